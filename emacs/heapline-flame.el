;;; heapline-flame.el --- Flame graph of a heap profile  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Writes the blocks of a tree buffer as an SVG flame graph, which a browser
;; shows with zoom and search.

;;; Code:

(require 'browse-url)
(require 'heapline-run)
(require 'heapline-tree)

(defcustom heapline-flame-viewer #'heapline-flame-browse
  "Function that shows an SVG file, with its name as the argument."
  :type 'function
  :group 'heapline)

(defun heapline-flame ()
  "Show the blocks of this buffer as a flame graph."
  (interactive)
  (unless (derived-mode-p 'heapline-tree-mode)
    (user-error "This is not a buffer of heapline"))
  (let ((file (make-temp-file "heapline-" nil ".svg")))
    (message "Drawing a flame graph...")
    (heapline-run
     (append (list "flame" heapline-tree-trace "-o" file "--force")
             (heapline-tree-filter-arguments))
     (lambda (_notes) (funcall heapline-flame-viewer file))
     (lambda (message)
       (delete-file file)
       (message "%s" message)))))

(defun heapline-flame-browse (file)
  "Show FILE in a browser, or say where it is if there is no display."
  (if (display-graphic-p)
      (browse-url-of-file file)
    (message "The flame graph is in %s" file)))

(provide 'heapline-flame)
;;; heapline-flame.el ends here
