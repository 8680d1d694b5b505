;;; heapline-tree-test.el --- Tests of the tree  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT

;;; Code:

(require 'heapline-test-helper)

(defconst heapline-tree-test-trace
  (heapline-test-fixture "mix-ocaml53/trace.ctf"))

(defun heapline-tree-test-expected (report own)
  "Return the figures and names of REPORT, in order; with OWN, its column too."
  (let ((whole (plist-get (plist-get (plist-get report :total) :bytes)
                          :value)))
    (mapcar
     (lambda (row)
       (let ((bytes (plist-get (plist-get row :total) :bytes))
             (itself (plist-get (plist-get row :own) :bytes))
             (label (plist-get row :label)))
         (string-join
          (delq nil
                (list (heapline-figures-estimate bytes)
                      (heapline-figures-percent (plist-get bytes :value) whole)
                      (and own (equal (plist-get row :kind) "call")
                           (> (plist-get itself :value) 0)
                           (heapline-figures-estimate itself))
                      (plist-get label :name)
                      (plist-get label :place)))
          " ")))
     (plist-get report :nodes))))

(defun heapline-tree-test-shown ()
  "Return the figures and names of all lines but the total."
  (mapcar (lambda (line)
            (string-trim
             (replace-regexp-in-string
              " +" " " (replace-regexp-in-string "\\[[-+]\\]" "" line))))
          (cdr (heapline-test-lines))))

(ert-deftest heapline-tree-shows-the-figures-of-the-report ()
  (dolist (fixture '("mix-ocaml53/trace.ctf" "mix-ocaml413/trace.ctf"
                     "odd/domains.ctf" "odd/peakend.ctf"))
    (let ((trace (heapline-test-fixture fixture)))
      (heapline-test-with-tree trace
        (heapline-test-go-to "total")
        (heapline-tree-unfold-below)
        (should (equal (heapline-tree-test-shown)
                       (heapline-tree-test-expected
                        (heapline-test-json "tree" trace "--json" "--bottom-up"
                                            "--by" "site" "--live" "end")
                        nil)))
        (heapline-tree-reverse)
        (heapline-test-wait-for-refresh)
        (heapline-tree-next-moment nil)
        (heapline-test-wait-for-refresh)
        (heapline-tree-set-grouping "function")
        (heapline-test-wait-for-refresh)
        (heapline-test-go-to "total")
        (heapline-tree-unfold-below)
        (should (equal (heapline-tree-test-shown)
                       (heapline-tree-test-expected
                        (heapline-test-json "tree" trace "--json")
                        t)))))))

;; What a program had allocated before is not in the recording.
(ert-deftest heapline-tree-says-that-live-is-since-attaching ()
  (heapline-test-with-tree heapline-tree-test-trace
    (should-not (string-match-p "since attaching" (heapline-tree--header)))
    (let* ((subject (append (plist-get heapline-tree-report :subject)
                            '(:attached_to 4711)))
           (heapline-tree-report (list :subject subject)))
      (should (string-match-p "live at the end since attaching"
                              (heapline-tree--header))))))

(ert-deftest heapline-tree-folds-and-unfolds ()
  (heapline-test-with-tree heapline-tree-test-trace
    (let ((first (heapline-test-names)))
      (should (equal (car first) "total"))
      (should-not (member "Mix" first))
      ;; At first, point is on the total.
      (should (equal (heapline-node-kind (heapline-tree-node-at-point))
                     "total"))
      (heapline-test-go-to "Stdlib.Bigarray.Array1.create")
      (heapline-tree-toggle)
      ;; A chain of single callers is unfolded at once.
      (should (equal (cl-subseq (member "Stdlib.Bigarray.Array1.create"
                                        (heapline-test-names))
                                0 3)
                     '("Stdlib.Bigarray.Array1.create" "Mix.external_" "Mix")))
      (should (equal (heapline-node-name (heapline-tree-node-at-point))
                     "Stdlib.Bigarray.Array1.create"))
      (heapline-tree-toggle)
      (should (equal (heapline-test-names) first))
      (heapline-test-go-to "total")
      (heapline-tree-unfold-below)
      (should (> (length (heapline-test-names)) (length first)))
      (heapline-test-go-to "Mix.external_")
      (heapline-tree-up)
      (should (equal (heapline-node-name (heapline-tree-node-at-point))
                     "Stdlib.Bigarray.Array1.create"))
      (heapline-tree-fold-all)
      (should (equal (heapline-test-names) first)))))

(ert-deftest heapline-tree-marks-show-what-can-be-unfolded ()
  (heapline-test-with-tree heapline-tree-test-trace
    (let ((lines (heapline-test-lines)))
      (should (string-match-p " \\[-\\] total$" (car lines)))
      (should (string-match-p " \\[\\+\\] Mix\\.big  mix\\.ml:11:58-80$"
                              (cadr lines)))
      (should (string-match-p "      other (1)$" (car (last lines)))))))

(ert-deftest heapline-tree-threshold-hides-nodes ()
  (heapline-test-with-tree heapline-tree-test-trace
    (heapline-tree-set-threshold "20%")
    (heapline-test-wait-for-refresh)
    (should (equal (heapline-test-names)
                   '("total" "Mix.big" "Mix.cached" "other (6)")))
    (heapline-tree-set-threshold "0%")
    (heapline-test-wait-for-refresh)
    (should-not (cl-some #'heapline-node-other-p
                         (heapline-node-and-below heapline-tree-root)))
    (heapline-tree-set-threshold "100")
    (should (equal (heapline-test-names) '("total" "Mix.big" "Mix.cached")))
    (should (string-match-p "min 0%%, min 100 samples"
                            (heapline-tree--header)))))

(ert-deftest heapline-tree-refresh-keeps-point-folding-and-threshold ()
  (heapline-test-with-directory directory
    (let ((trace (expand-file-name "growing.ctf" directory)))
      (copy-file heapline-tree-test-trace trace)
      (heapline-test-with-tree trace
        (heapline-tree-set-threshold "2%")
        (heapline-test-wait-for-refresh)
        (heapline-test-go-to "Mix.cached")
        (heapline-tree-toggle)
        (forward-line)
        (move-to-column 7)
        (let ((names (heapline-test-names))
              (line (line-number-at-pos)))
          (revert-buffer)
          (heapline-test-wait-for-refresh)
          (should (equal (heapline-test-names) names))
          (should (equal (line-number-at-pos) line))
          (should (equal (current-column) 7))
          (should (equal (window-point) (point))))
        ;; The trace is another one now, in which everything has moved.
        (copy-file (heapline-test-fixture "mix-ocaml413/trace.ctf") trace t)
        (heapline-tree-refresh)
        (heapline-test-wait-for-refresh)
        (should (equal heapline-tree-min-share "2%"))
        (let ((node (heapline-tree-node-at-point)))
          (should (equal (heapline-node-name node) "Mix"))
          (should (equal (heapline-node-name (heapline-node-parent node))
                         "Mix.cached")))
        ;; The node is hidden: point goes to the one above it.
        (heapline-tree-set-query "not inside \"Mix.cached\"")
        (heapline-test-wait-for-refresh)
        (should (equal (heapline-node-kind (heapline-tree-node-at-point))
                       "total"))))))

(ert-deftest heapline-tree-moments-and-queries-select-blocks ()
  (heapline-test-with-tree heapline-tree-test-trace
    (dolist (expected '("peak" nil "end"))
      (call-interactively #'heapline-tree-next-moment)
      (should (equal heapline-tree-moment expected))
      (heapline-test-wait-for-refresh)
      (should (equal (plist-get heapline-tree-report :total)
                     (plist-get
                      (apply #'heapline-test-json "tree"
                             heapline-tree-test-trace "--json"
                             (and expected (list "--live" expected)))
                      :total))))
    (heapline-tree-set-query "size >= 64KiB")
    (heapline-test-wait-for-refresh)
    (should (equal (heapline-test-names)
                   '("total" "Mix.big" "Stdlib.Bigarray.Array1.create")))
    (heapline-tree-set-query "")
    (should-not heapline-tree-query)))

(ert-deftest heapline-tree-shows-errors-as-they-are ()
  (heapline-test-with-directory directory
    (let ((missing (expand-file-name "missing.ctf" directory)))
      (heapline-test-with-tree missing
        (should (equal (string-trim (buffer-string))
                       (format "heapline: cannot open %s: %s" missing
                               "No such file or directory"))))))
  (heapline-test-with-tree heapline-tree-test-trace
    (let ((names (heapline-test-names)))
      (heapline-tree-set-query "size >=")
      (heapline-test-wait-for-refresh)
      (should (string-match-p "\\`heapline: cannot parse --where:"
                              (buffer-string)))
      ;; What was known stays.
      (should (equal (heapline-test-names) names))
      (heapline-tree-set-query "")
      (heapline-test-wait-for-refresh)
      (should-not (string-match-p "cannot parse" (buffer-string))))))

(ert-deftest heapline-tree-says-that-the-program-is-missing ()
  (let ((heapline-program "/nonexistent/heapline"))
    (heapline-test-with-tree heapline-tree-test-trace
      (should (string-match-p "\\`cannot find /nonexistent/heapline; set `heapline-program'"
                              (buffer-string))))))

(ert-deftest heapline-tree-warnings-are-shown ()
  (heapline-test-with-tree
      (car (directory-files (heapline-test-fixture "damaged") t "\\.ctf\\'"))
    (should heapline-tree-root)
    (should (string-match-p "^heapline: .* is " (buffer-string)))))

(ert-deftest heapline-tree-never-blocks ()
  (heapline-test-with-directory directory
    (let* ((gate (expand-file-name "gate" directory))
           (heapline-program
            (heapline-test-fake
             directory
             (format "while ! test -e %s; do sleep 0.01; done\nexec %s \"$@\"\n"
                     (shell-quote-argument gate)
                     (shell-quote-argument heapline-program))))
           (buffer (heapline-tree-open heapline-tree-test-trace)))
      (unwind-protect
          (with-current-buffer buffer
            ;; The program cannot have ended, and Emacs goes on.
            (should (process-live-p heapline-tree--process))
            (should (string-match-p "reading" (heapline-tree--header)))
            ;; Of several refreshes, the last one counts.
            (let ((first heapline-tree--process))
              (heapline-tree-set-threshold "20%")
              (should-not (eq heapline-tree--process first))
              (heapline-test-wait "end of the first refresh"
                                  (lambda () (not (process-live-p first)))))
            (write-region "" nil gate nil 'silent)
            (heapline-test-wait-for-refresh)
            (should (equal (heapline-test-names)
                           '("total" "Mix.big" "Mix.cached" "other (6)"))))
        (kill-buffer buffer)))))

(ert-deftest heapline-tree-refreshes-by-a-timer ()
  (let ((heapline-refresh-interval 0.01)
        (refreshes 0))
    (heapline-test-with-tree heapline-tree-test-trace
      (should-not heapline-tree--timer)
      (cl-letf* ((receive (symbol-function 'heapline-tree--receive))
                 ((symbol-function 'heapline-tree--receive)
                  (lambda (&rest arguments)
                    (setq refreshes (1+ refreshes))
                    (apply receive arguments))))
        (heapline-tree-toggle-auto)
        (heapline-test-wait "three refreshes" (lambda () (>= refreshes 3)))
        (heapline-tree-toggle-auto)
        (heapline-test-wait-for-refresh)
        (should-not heapline-tree--timer)))))

(ert-deftest heapline-tree-killed-buffers-leave-nothing-behind ()
  (heapline-test-with-tree heapline-tree-test-trace
    (heapline-tree-toggle-auto)
    (heapline-test-wait-for-refresh)
    (should heapline-tree--timer)
    (heapline-tree-refresh)
    (should (process-live-p heapline-tree--process)))
  (should-not (cl-find #'heapline-tree--tick timer-list
                       :key #'timer--function))
  (heapline-test-wait
   "end of all processes and their buffers"
   (lambda ()
     (not (or (cl-some (lambda (process)
                         (string-prefix-p "heapline" (process-name process)))
                       (process-list))
              (cl-some (lambda (buffer)
                         (string-prefix-p " *heapline" (buffer-name buffer)))
                       (buffer-list)))))))

(ert-deftest heapline-tree-deep-stacks ()
  (heapline-test-with-tree (heapline-test-fixture "odd/deep1000.ctf")
    (heapline-tree-next-moment nil)
    (heapline-test-wait-for-refresh)
    (heapline-tree-set-threshold "0%")
    (heapline-test-wait-for-refresh)
    (heapline-test-go-to "total")
    (heapline-tree-unfold-below)
    (should (= (1- (length (heapline-test-names)))
               (length (plist-get heapline-tree-report :nodes))))
    (should (cl-some (lambda (line) (string-match-p " (999) " line))
                     (heapline-test-lines)))))

(ert-deftest heapline-tree-shows-any-profile ()
  (let ((profiles
         (append (mapcar #'heapline-test-fixture
                         '("odd/empty.ctf" "odd/stripped.ctf"
                           "odd/t1000.ctf"))
                 (directory-files (heapline-test-fixture "damaged") t "ctf\\'")
                 (directory-files-recursively
                  (heapline-test-fixture "spacetime")
                  "\\.profile\\(?:\\.zst\\|\\.p\\)?\\'"))))
    (should (> (length profiles) 8))
    (dolist (profile profiles)
      (ert-info (profile :prefix "Profile: ")
        (heapline-test-with-tree profile
          (dotimes (_ 2)
            (should-not heapline-tree-error)
            (heapline-test-go-to "total")
            (heapline-tree-unfold-below)
            (heapline-tree-describe)
            (heapline-tree-reverse)
            (heapline-test-wait-for-refresh)))))))

(ert-deftest heapline-tree-two-traces-of-the-same-name ()
  (heapline-test-with-tree heapline-tree-test-trace
    (let ((first buffer))
      (heapline-test-with-tree (heapline-test-fixture "mix-ocaml413/trace.ctf")
        (should-not (eq buffer first))
        (should (eq first (heapline-tree-open heapline-tree-test-trace)))))))

(provide 'heapline-tree-test)
;;; heapline-tree-test.el ends here
