;;; heapline-figures-test.el --- Tests of figures  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT

;;; Code:

(require 'heapline-test-helper)

(ert-deftest heapline-figures-memory-in-powers-of-1024 ()
  (should (equal (heapline-figures-bytes 0.0) "0 B"))
  (should (equal (heapline-figures-bytes 1023.0) "1023 B"))
  (should (equal (heapline-figures-bytes 1024.0) "1 KiB"))
  (should (equal (heapline-figures-bytes 1048575.0) "1.00 MiB"))
  (should (equal (heapline-figures-bytes 54539.0) "53.3 KiB"))
  (should (equal (heapline-figures-bytes (* 4.0 4294967295)) "16.0 GiB"))
  (should (equal (heapline-figures-bytes nil) "?")))

(ert-deftest heapline-figures-errors-decide-digits ()
  (cl-flet ((estimate (value err)
              (heapline-figures-estimate (list :value value :error err))))
    (should (equal (estimate 12.3456e6 0.42e6) "11.77 ± 0.40 MiB"))
    (should (equal (estimate 12.3456e6 4.2e6) "11.8 ± 4.0 MiB"))
    (should (equal (estimate (* 777 1024.0) (* 1077 1024.0)) "0.8 ± 1.1 MiB"))
    (should (equal (estimate 80.0 0.0) "80 B"))
    (should (equal (estimate 0.0 24000.0) "< 23.4 KiB"))
    (should (equal (estimate 0.0 0.0) "0 B"))
    (should (equal (estimate nil nil) "?"))))

(ert-deftest heapline-figures-counts-and-shares ()
  (should (equal (heapline-figures-count '(:value 7353975.2 :error 1200.0))
                 "7,353,975 ± 1,200"))
  (should (equal (heapline-figures-count '(:value 999 :error 0)) "999"))
  (should (equal (heapline-figures-percent 0.01 100) "< 0.1"))
  (should (equal (heapline-figures-percent 1 3) "33.3"))
  (should (equal (heapline-figures-percent 1 0) "-")))

(ert-deftest heapline-figures-are-those-of-the-text-reports ()
  (dolist (fixture '("mix-ocaml53/trace.ctf" "mix-ocaml413/trace.ctf"
                     "odd/domains.ctf" "odd/t1000.ctf" "odd/peakend.ctf"))
    (let* ((trace (heapline-test-fixture fixture))
           (by '("--by" "site" "--rows" "1000"))
           (text (apply #'heapline-test-run "hotspots" trace by))
           (report (apply #'heapline-test-json "hotspots" trace "--json" by))
           (rows (plist-get report :rows)))
      (should rows)
      (dolist (row rows)
        (should (string-match-p
                 (concat "^ +"
                         (regexp-quote
                          (heapline-figures-estimate
                           (plist-get (plist-get row :allocated) :bytes)))
                         "  ")
                 text)))
      ;; The title has the total.
      (should (string-prefix-p
               (concat (heapline-figures-estimate
                        (plist-get (plist-get (plist-get report :total)
                                              :allocated)
                                   :bytes))
                       " by site")
               text)))))

(ert-deftest heapline-figures-names-cannot-forge-lines ()
  (should (equal (heapline-figures-sanitize "f\e[2J\n\u202eg\u009b")
                 "f\ufffd[2J\ufffd\ufffdg\ufffd"))
  (should (equal (heapline-figures-sanitize "漢字 Stdlib.List.map")
                 "漢字 Stdlib.List.map")))

(provide 'heapline-figures-test)
;;; heapline-figures-test.el ends here
