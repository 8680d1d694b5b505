;;; heapline-commands-test.el --- Tests of sources, tables, recordings  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT

;;; Code:

(require 'heapline-test-helper)
(require 'heapline-flame)
(require 'heapline-table)

(defconst heapline-commands-test-trace
  (heapline-test-fixture "mix-ocaml53/trace.ctf"))

;;; Sources

(ert-deftest heapline-source-places ()
  (should (equal (heapline-source-parse "src/a.ml:10:3-9")
                 '("src/a.ml" 10 3 9)))
  (should (equal (heapline-source-parse "C:/b.rs:7") '("C:/b.rs" 7 nil nil)))
  (should-not (heapline-source-parse "a.ml"))
  (should-not (heapline-source-parse nil)))

(ert-deftest heapline-source-of-a-site ()
  (let ((default-directory (heapline-test-fixture "mix-ocaml53/")))
    (heapline-test-with-tree heapline-commands-test-trace
      (heapline-test-go-to "Mix.big")
      (heapline-tree-find-source)
      (unwind-protect
          (progn
            (should (equal buffer-file-name (heapline-test-fixture "mix.ml")))
            (should (equal (line-number-at-pos) 11))
            (should (looking-at-p (regexp-quote "(Array.make 100_000 0)"))))
        (kill-buffer)))))

(ert-deftest heapline-source-of-a-function-without-a-line ()
  (let ((default-directory (heapline-test-fixture "mix-ocaml53/")))
    (heapline-test-with-tree heapline-commands-test-trace
      (heapline-tree-reverse)
      (heapline-tree-set-grouping "function")
      (heapline-test-wait-for-refresh)
      (heapline-test-go-to "total")
      (heapline-tree-unfold-below)
      (heapline-test-go-to "Mix.leak_some")
      (heapline-tree-find-source)
      (unwind-protect
          (should (looking-at-p "let leak_some n"))
        (kill-buffer)))))

(ert-deftest heapline-source-of-another-machine ()
  (heapline-test-with-directory directory
    (let ((file (expand-file-name "lib/parser/lexer.ml" directory))
          (heapline-source-directories (list directory)))
      (make-directory (file-name-directory file) t)
      (write-region "let a = 1\nlet b = 2\n" nil file nil 'silent)
      (heapline-source-find "Lexer.b" "/build/x/lib/parser/lexer.ml:2:4-5" nil)
      (unwind-protect
          (progn
            (should (equal buffer-file-name file))
            (should (looking-at-p "b = 2")))
        (kill-buffer)))))

(ert-deftest heapline-source-asks-once ()
  (heapline-test-with-directory directory
    (let ((one (expand-file-name "src/one.ml" directory))
          (two (expand-file-name "src/two.ml" directory))
          (default-directory "/")
          (heapline-source-directories nil)
          (questions 0))
      (make-directory (file-name-directory one))
      (write-region "one\n" nil one nil 'silent)
      (write-region "two\n" nil two nil 'silent)
      (cl-letf (((symbol-function 'read-file-name)
                 (lambda (&rest _) (setq questions (1+ questions)) one)))
        (save-current-buffer
          (heapline-source-find "One" "src/one.ml:1" nil)
          (should (equal buffer-file-name one))
          (kill-buffer))
        (save-current-buffer
          (heapline-source-find "Two" "src/two.ml:1" nil)
          (should (equal buffer-file-name two))
          (kill-buffer)))
      (should (= questions 1)))))

(ert-deftest heapline-source-names-open-no-connection ()
  (heapline-test-with-directory directory
    (let* (opened
           (heapline-source-directories (list "/" directory))
           (default-directory directory)
           (file-name-handler-alist
            (cons (cons "\\`/\\(?:ssh\\|sudo\\):\\|\\.gpg\\'"
                        (lambda (operation &rest arguments)
                          (push (cons operation arguments) opened)
                          (error "A file name handler was called")))
                  file-name-handler-alist)))
      (dolist (name '("/ssh:host.invalid:/x.ml" "ssh:host.invalid:/x.ml"
                      "/sudo::/x.ml" "//ssh:host.invalid:/x.ml"
                      "./ssh:host.invalid:/x.ml" "~root/x.ml" "secret.gpg"
                      "/:/x.ml"))
        (should-not (heapline-source--locate name))
        (cl-letf (((symbol-function 'read-file-name)
                   (lambda (_prompt _directory _default _must initial)
                     (should-not (string-match-p "[:~]\\|gpg" (or initial "")))
                     (signal 'quit nil))))
          (unless (equal name "secret.gpg")
            (condition-case nil
		(heapline-source-find "f" (concat name ":1") nil)
              (quit nil)))))
      (should-not opened))))

(ert-deftest heapline-source-in-a-directory-with-a-handler ()
  (heapline-test-with-directory directory
    (write-region "let a = 1\n" nil (expand-file-name "a.ml" directory)
                  nil 'silent)
    ;; Stands for a directory of the user on another host.
    (let ((heapline-source-directories (list (concat "/:" directory))))
      (should (equal (heapline-source--locate "src/a.ml")
                     (concat "/:" directory "a.ml"))))))

(ert-deftest heapline-source-of-the-total ()
  (heapline-test-with-tree heapline-commands-test-trace
    (heapline-test-go-to "total")
    (should-error (heapline-tree-find-source) :type 'user-error)))

;;; Table and flame graph

(ert-deftest heapline-table-shows-hotspots ()
  (heapline-test-with-tree heapline-commands-test-trace
    (heapline-tree-set-grouping "function")
    (heapline-test-wait-for-refresh)
    (heapline-table)
    (unwind-protect
        (progn
          (heapline-test-wait "rows" (lambda () tabulated-list-entries))
          (let ((rows (plist-get
                       (heapline-test-json
                        "hotspots" heapline-commands-test-trace "--json"
                        "--sort" "end" "--rows" "200")
                       :rows)))
            (should (equal (mapcar (lambda (entry)
                                     (let ((cells (cadr entry)))
                                       (aref cells (1- (length cells)))))
                                   tabulated-list-entries)
                           (mapcar (lambda (row)
                                     (plist-get (plist-get row :label) :name))
                                   rows)))
            (should (equal (let ((cells (cadr (car tabulated-list-entries))))
                             (aref cells (- (length cells) 2)))
                           (heapline-figures-estimate
                            (plist-get (plist-get (car rows) :live_at_end)
                                       :bytes)))))
          ;; By bytes, not by the text of the cells.
          (tabulated-list-sort 0)
          (let ((bytes (mapcar (lambda (entry)
                                 (heapline-table--bytes (car entry)
                                                        :allocated))
                               tabulated-list-entries)))
            (should (equal (heapline-commands-test-shown-bytes)
                           (sort bytes #'<)))))
      (kill-buffer))))

(defun heapline-commands-test-shown-bytes ()
  "Return the bytes of the rows of a table, in the order of its lines."
  (save-excursion
    (goto-char (point-min))
    (let (bytes)
      (while (tabulated-list-get-id)
        (push (heapline-table--bytes (tabulated-list-get-id) :allocated) bytes)
        (forward-line))
      (nreverse bytes))))

(ert-deftest heapline-flame-writes-a-graph ()
  (heapline-test-with-tree heapline-commands-test-trace
    (let* (file
           (heapline-flame-viewer (lambda (svg) (setq file svg))))
      (heapline-flame)
      (heapline-test-wait "flame graph" (lambda () file))
      (with-temp-buffer
        (insert-file-contents file)
        (should (search-forward "<svg" nil t))
        (should (search-forward "Mix.big" nil t)))
      (delete-file file))))

;;; Recordings

(defconst heapline-commands-test-program "
let kept = ref []
let keep n = for i = 1 to n do kept := Bytes.create 1000 :: !kept done
let () =
  keep 20000;
  print_endline \"ready\";
  let line = read_line () in
  keep 20000;
  print_endline (\"end of \" ^ line)
"
  "A program that is recorded: it waits for a line.")

(defun heapline-commands-test-build (directory)
  "Build the program in DIRECTORY; return it, or nil if there is no compiler."
  (let ((default-directory directory))
    (cond ((not (getenv "HEAPLINE_TEST_RECORDING")) nil)
          ((not (executable-find "ocamlfind"))
           (should-not (getenv "HEAPLINE_REQUIRE"))
           nil)
          (t
           (write-region heapline-commands-test-program nil "waits.ml" nil
                         'silent)
           (should (= 0 (call-process "ocamlfind" nil nil nil "ocamlopt" "-g"
                                      "waits.ml" "-o" "waits.exe")))
           (expand-file-name "waits.exe" directory)))))

(ert-deftest heapline-records-a-program-and-finds-its-process ()
  (heapline-test-with-directory directory
    (let ((program (heapline-commands-test-build directory))
          (heapline-refresh-interval 0.05)
          (default-directory directory))
      (unless program
        (ert-skip "this build cannot record, or there is no OCaml compiler"))
      (heapline-top (concat "./" (file-name-nondirectory program)))
      (let* ((tree (current-buffer))
             (recorder heapline-tree-recorder)
             (output (process-buffer recorder)))
        (heapline-test-wait
         "program" (lambda ()
                     (with-current-buffer output
                       (string-match-p "ready" (buffer-string)))))
        (heapline-test-wait
         "blocks of the running program"
         (lambda () (and heapline-tree-live heapline-tree-auto
                         (> (heapline-node-samples heapline-tree-root) 0))))
        (should (equal (heapline-tree--moment-text) "live now"))
        (heapline-test-go-to "total")
        (heapline-tree-unfold-below)
        (should (member "Waits.keep" (heapline-test-names)))
        ;; The same trace, by the id of the process.
        (let ((pid (heapline-commands-test-pid heapline-tree-notes))
              (before (heapline-node-bytes heapline-tree-root)))
          (should (equal (file-truename (heapline-record-trace-of pid))
                         (file-truename heapline-tree-trace)))
          (heapline-top (number-to-string pid))
          (should (eq (current-buffer) tree))
          ;; Input goes to the program; the tree grows, and says that it ends.
          (comint-send-string recorder "input\n")
          (heapline-test-wait "end of the program"
                              (lambda () (not (process-live-p recorder))))
          (heapline-test-wait "end of the recording"
                              (lambda () (not heapline-tree-live)))
          (heapline-test-wait-for-refresh)
          (should-not heapline-tree-auto)
          (should-not heapline-tree-error)
          (should (> (heapline-node-bytes heapline-tree-root)
                     (* 1.5 before))))
        (save-window-excursion
          (heapline-tree-show-output)
          (should (eq (current-buffer) output))
          (should (string-match-p "end of input" (buffer-string))))
        (delete-directory (file-name-directory heapline-tree-trace) t)
        (kill-buffer tree)
        (kill-buffer output)))))

(defun heapline-commands-test-pid (notes)
  "Return the id of the recorded process that NOTES tell."
  (should (string-match "process \\([0-9]+\\) is still recording" notes))
  (string-to-number (match-string 1 notes)))

(ert-deftest heapline-record-shows-the-error-of-the-recorder ()
  (heapline-top "/bin/true")
  (let ((tree (current-buffer)))
    (heapline-test-wait "error" (lambda () heapline-tree-error))
    (let ((error-shown heapline-tree-error))
      (should (string-match-p "\\`heapline: .*\n*\\'" (buffer-string)))
      (should-not (string-match-p "true\\.ctf" error-shown))
      ;; Nothing is under way that would replace it.
      (should-not heapline-tree--timer)
      (should-not heapline-tree--process)
      (heapline-tree-refresh)
      (heapline-test-wait-for-refresh)
      (should (equal heapline-tree-error error-shown)))
    (should-not heapline-tree-root)
    (kill-buffer tree)))

(ert-deftest heapline-attach-shows-its-error ()
  ;; Emacs itself: not an OCaml program, whether heapline can attach or not.
  (heapline-top (number-to-string (emacs-pid)))
  (let ((tree (current-buffer)))
    (heapline-test-wait "error" (lambda () heapline-tree-error))
    (should-not (string-empty-p heapline-tree-error))
    (should-not heapline-tree-root)
    (kill-buffer tree)))

(ert-deftest heapline-process-that-does-not-exist ()
  (let ((problem (should-error (heapline-top "4194305") :type 'user-error)))
    (should (equal (cadr problem) "There is no process 4194305"))))

;;; The package

(ert-deftest heapline-autoloads-are-generated ()
  (heapline-test-with-directory directory
    (let* ((source (file-name-directory (locate-library "heapline.el")))
           (autoloads (expand-file-name "heapline-autoloads.el" directory)))
      (dolist (file (directory-files source t "\\`heapline.*\\.el\\'"))
        (copy-file file directory))
      (require 'package)
      (package-generate-autoloads "heapline" directory)
      (with-temp-buffer
        (insert-file-contents autoloads)
        (dolist (command '("heapline-top" "heapline-trace" "heapline-process"
                           "heapline-record"))
          (goto-char (point-min))
          (should (search-forward (format "(autoload '%s \"heapline\"" command)
                                  nil t)))))))

(provide 'heapline-commands-test)
;;; heapline-commands-test.el ends here
