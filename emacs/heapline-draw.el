;;; heapline-draw.el --- Draw a call tree in a buffer  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Inserts the lines of a tree, and keeps point and the first line of windows
;; where they are when the buffer is drawn again.

;;; Code:

(require 'cl-lib)
(require 'heapline-figures)
(require 'heapline-node)

(defface heapline-large '((t :inherit warning))
  "Face for shares of 10 % and more."
  :group 'heapline)

(defface heapline-place '((t :inherit link :underline nil))
  "Face for places in source files."
  :group 'heapline)

(defconst heapline-draw--deepest 40
  "Columns that lines are indented at most; deeper ones have their depth.")

(cl-defun heapline-draw-tree (nodes &key total open-p min-samples own)
  "Insert a line for each of NODES.
TOTAL is the node that shares are of.  OPEN-P returns non-nil for nodes
that are unfolded; those with fewer than MIN-SAMPLES samples are hidden.
With OWN, show a column of what functions allocate themselves."
  (let* ((whole (heapline-node-bytes total))
         (rows (mapcar (lambda (node) (heapline-draw--figures node whole own))
                       nodes))
         (titles (if own '("total" "%" "own") '("total" "%")))
         (widths (apply #'cl-mapcar
                        (lambda (&rest cells)
                          (apply #'max (mapcar #'string-width cells)))
                        titles rows)))
    (insert (propertize (heapline-draw--columns titles widths) 'face 'bold)
            "\n")
    (cl-mapc (lambda (node cells)
               (heapline-draw--line node cells widths whole
                                    open-p min-samples))
             nodes rows)))

(defun heapline-draw--figures (node whole own)
  "Return the cells before the name of NODE.
Its share is of WHOLE.  With OWN, add what it allocates itself."
  (let ((estimate (plist-get (heapline-node-total node) :bytes))
        (itself (plist-get (heapline-node-own node) :bytes)))
    (append
     (list (heapline-figures-estimate estimate)
           (heapline-figures-percent (plist-get estimate :value) whole))
     (when own
       (list (if (and (equal (heapline-node-kind node) "call")
                      (> (or (plist-get itself :value) 0) 0))
                 (heapline-figures-estimate itself)
               ""))))))

(defun heapline-draw--columns (cells widths)
  "Return CELLS right-aligned in columns of WIDTHS."
  (mapconcat (lambda (pair)
               (concat (make-string (- (cdr pair) (string-width (car pair)))
                                    ?\s)
                       (car pair)))
             (cl-mapcar #'cons cells widths)
             "  "))

(defun heapline-draw--line (node cells widths whole open-p min-samples)
  "Insert the line of NODE, with CELLS in columns of WIDTHS.
WHOLE is the total.  The mark depends on OPEN-P and MIN-SAMPLES."
  (let* ((start (point))
         (depth (heapline-node-depth node))
         (is-other (heapline-node-other-p node))
         (share (/ (or (heapline-node-bytes node) 0)
                   (max (or whole 0) 1.0)))
         (mark (cond ((null (heapline-node-visible-children node min-samples))
                      "   ")
                     ((funcall open-p node) "[-]")
                     (t "[+]"))))
    (insert (heapline-draw--columns cells widths) "  ")
    (cond ((or is-other (heapline-draw--noise-p node))
           (add-face-text-property start (point) 'shadow))
          ((and (>= share 0.1) (> depth 0))
           (add-face-text-property start (point) 'heapline-large)))
    (insert (make-string (min depth heapline-draw--deepest) ?\s))
    (when (> depth heapline-draw--deepest)
      (insert (format "(%d) " depth)))
    (insert (if (equal mark "   ")
                mark
              (propertize mark 'mouse-face 'highlight 'follow-link t
                          'heapline-part 'mark
                          'help-echo "mouse-1: fold or unfold"))
            " "
            (propertize (heapline-figures-sanitize (heapline-node-name node))
                        'face (if is-other 'shadow 'default)))
    (when (heapline-node-place node)
      (insert "  "
              (propertize (heapline-figures-sanitize (heapline-node-place node))
                          'face 'heapline-place 'mouse-face 'highlight
                          'follow-link t 'heapline-part 'source
                          'help-echo "mouse-1: go to the source")))
    (insert "\n")
    (put-text-property start (point) 'heapline-node node)))

(defun heapline-draw--noise-p (node)
  "Return non-nil if NODE cannot be told from nothing, given its error."
  (let ((estimate (plist-get (heapline-node-total node) :bytes)))
    (and (plist-get estimate :value)
         (> (or (plist-get estimate :error) 0) 0)
         (>= (plist-get estimate :error) (plist-get estimate :value)))))

(defun heapline-draw-description (node total)
  "Return a line with all figures of NODE; its share is of TOTAL."
  (let* ((figures (heapline-node-total node))
         (bytes (plist-get figures :bytes))
         (exact (= (or (plist-get bytes :error) 0) 0)))
    (concat
     (heapline-figures-sanitize (heapline-node-name node)) ": "
     (heapline-figures-estimate bytes)
     (unless exact
       (format " (%s to %s)"
               (heapline-figures-bytes (plist-get bytes :low))
               (heapline-figures-bytes (plist-get bytes :high))))
     (format ", %s %% of the total, blocks: %s, samples: %d"
             (heapline-figures-percent (heapline-node-bytes node)
                                       (heapline-node-bytes total))
             (heapline-figures-count (plist-get figures :blocks))
             (heapline-node-samples node))
     (when (heapline-node-place node)
       (concat ", " (heapline-figures-sanitize (heapline-node-place node)))))))

;;; Places in the buffer

(defun heapline-draw-node-at (position)
  "Return the node of the line at POSITION, or nil."
  (get-text-property (save-excursion (goto-char position)
                                     (line-beginning-position))
                     'heapline-node))

(defun heapline-draw--place (position)
  "Return what `heapline-draw--position' needs to find POSITION again."
  (save-excursion
    (goto-char position)
    (let ((column (current-column))
          (node (heapline-draw-node-at position))
          keys)
      (while node
        (push (heapline-node-key node) keys)
        (setq node (heapline-node-parent node)))
      (list (nreverse keys) column (line-number-at-pos)))))

(defun heapline-draw-go-to (keys)
  "Go to the line of the first of KEYS that is shown; return non-nil if any."
  (let ((lines (make-hash-table :test #'equal)))
    (save-excursion
      (goto-char (point-min))
      (while (not (eobp))
        (let ((node (heapline-draw-node-at (point))))
          (when node
            (puthash (heapline-node-key node) (point) lines)))
        (forward-line)))
    (let ((found (cl-some (lambda (key) (gethash key lines)) keys)))
      (when found
        (goto-char found)))))

(defun heapline-draw--position (place)
  "Return the position of PLACE, of `heapline-draw--place', in the new text."
  (cl-destructuring-bind (keys column line) place
    (save-excursion
      (unless (heapline-draw-go-to keys)
        (goto-char (point-min))
        (forward-line (1- line)))
      (move-to-column column)
      (point))))

(defun heapline-draw-keeping-place (draw)
  "Call DRAW, which draws the buffer, and keep point in it and its windows."
  (let ((place (heapline-draw--place (point)))
        (windows (mapcar
                  (lambda (window)
                    (list window
                          (heapline-draw--place (window-point window))
                          (heapline-draw--place (window-start window))))
                  (get-buffer-window-list nil nil t))))
    (funcall draw)
    (goto-char (heapline-draw--position place))
    (pcase-dolist (`(,window ,its-point ,its-start) windows)
      (set-window-start window (heapline-draw--position its-start) t)
      (set-window-point window (heapline-draw--position its-point)))))

(provide 'heapline-draw)
;;; heapline-draw.el ends here
