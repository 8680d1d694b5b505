;;; heapline-lint.el --- Byte-compile and check documentation  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Run in batch.  Compiled files go to a temporary directory.

;;; Code:

(require 'bytecomp)
(require 'checkdoc)

(defvar heapline-lint-problems nil "What was found, latest first.")

(let* ((source (expand-file-name ".." (file-name-directory load-file-name)))
       (target (make-temp-file "heapline-lint-" t))
       (byte-compile-error-on-warn t)
       (byte-compile-dest-file-function
        (lambda (file)
          (expand-file-name (concat (file-name-nondirectory file) "c") target)))
       (checkdoc-create-error-function
        (lambda (text start &rest _)
          (push (format "%s:%d: %s" (buffer-name)
                        (line-number-at-pos (or start (point))) text)
                heapline-lint-problems)
          nil)))
  (add-to-list 'load-path source)
  (unwind-protect
      (dolist (file (directory-files source t "\\.el\\'"))
        (unless (byte-compile-file file)
          (push (format "%s does not compile without warnings" file)
                heapline-lint-problems))
        (with-current-buffer (find-file-noselect file)
          (let ((inhibit-message t))
            (checkdoc-current-buffer t))))
    (delete-directory target t)))

(dolist (problem (reverse heapline-lint-problems))
  (princ (concat problem "\n")))
(kill-emacs (if heapline-lint-problems 1 0))

;;; heapline-lint.el ends here
