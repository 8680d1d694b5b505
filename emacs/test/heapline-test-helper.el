;;; heapline-test-helper.el --- Shared code of the tests  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; HEAPLINE is the path of the program to test with, HEAPLINE_FIXTURES the
;; directory of the traces.

;;; Code:

(require 'ert)
(require 'heapline)

(defconst heapline-test-patience 60
  "Seconds after which something that does not happen is a failure.")

(defconst heapline-test-fixtures
  (file-name-as-directory
   (expand-file-name (or (getenv "HEAPLINE_FIXTURES") "../../fixtures/")
                     (file-name-directory (or load-file-name
                                              buffer-file-name)))))

(setq heapline-program (or (getenv "HEAPLINE") "heapline"))

(defun heapline-test-fixture (name)
  "Return the path of the fixture NAME."
  (expand-file-name name heapline-test-fixtures))

(defun heapline-test-wait (description predicate)
  "Handle events until PREDICATE returns non-nil; DESCRIPTION says what for."
  (let ((end (+ (float-time) heapline-test-patience))
        result)
    (while (not (setq result (funcall predicate)))
      (when (> (float-time) end)
        (ert-fail (list "It did not happen" description)))
      (accept-process-output nil 0.02))
    result))

(defun heapline-test-wait-for-refresh ()
  "Wait until the refresh of the current buffer is done."
  (let ((buffer (current-buffer)))
    (heapline-test-wait
     "refresh" (lambda ()
                 (null (buffer-local-value 'heapline-tree--process buffer))))))

(defmacro heapline-test-with-tree (trace &rest body)
  "Evaluate BODY in a tree buffer of TRACE, shown in the selected window."
  (declare (indent 1) (debug t))
  `(let ((buffer (heapline-tree-open ,trace)))
     (unwind-protect
         (progn
           (switch-to-buffer buffer)
           (heapline-test-wait-for-refresh)
           ,@body)
       (kill-buffer buffer))))

(defmacro heapline-test-with-directory (name &rest body)
  "Evaluate BODY with a temporary directory in the variable NAME."
  (declare (indent 1) (debug (symbolp body)))
  `(let ((,name (file-name-as-directory (make-temp-file "heapline-test-" t))))
     (unwind-protect
         (progn ,@body)
       (delete-directory ,name t))))

(defun heapline-test-run (&rest arguments)
  "Return what heapline prints with ARGUMENTS, run in the usual way."
  (with-temp-buffer
    (let ((coding-system-for-read 'utf-8)
          (process-environment
           (append '("COLUMNS=200" "LC_ALL=C.UTF-8") process-environment)))
      (should (equal 0 (apply #'call-process heapline-program nil '(t nil)
                              nil arguments))))
    (buffer-string)))

(defun heapline-test-json (&rest arguments)
  "Return the JSON that heapline prints with ARGUMENTS."
  (with-temp-buffer
    (insert (apply #'heapline-test-run arguments))
    (goto-char (point-min))
    (heapline-run-json)))

(defun heapline-test-fake (directory script)
  "Return a program in DIRECTORY that runs the shell SCRIPT."
  (let ((program (expand-file-name "fake-heapline" directory)))
    (with-temp-file program
      (insert "#!/bin/sh\n" script))
    (set-file-modes program #o755)
    program))

(defun heapline-test-lines ()
  "Return the lines of the tree in the current buffer, without properties."
  (save-excursion
    (goto-char (point-min))
    (let (lines)
      (while (not (eobp))
        (when (heapline-draw-node-at (point))
          (push (buffer-substring-no-properties (line-beginning-position)
                                                (line-end-position))
                lines))
        (forward-line))
      (nreverse lines))))

(defun heapline-test-names ()
  "Return the names of the nodes that are shown."
  (save-excursion
    (goto-char (point-min))
    (let (names)
      (while (not (eobp))
        (let ((node (heapline-draw-node-at (point))))
          (when node
            (push (heapline-node-name node) names)))
        (forward-line))
      (nreverse names))))

(defun heapline-test-go-to (name)
  "Go to the first line of the node NAME."
  (goto-char (point-min))
  (while (not (let ((node (heapline-draw-node-at (point))))
                (and node (equal (heapline-node-name node) name))))
    (should-not (eobp))
    (forward-line)))

(provide 'heapline-test-helper)
;;; heapline-test-helper.el ends here
