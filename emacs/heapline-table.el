;;; heapline-table.el --- Table of allocating functions  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The table of `heapline hotspots', sortable by its columns.

;;; Code:

(require 'cl-lib)
(require 'tabulated-list)
(require 'heapline-figures)
(require 'heapline-run)
(require 'heapline-source)
(require 'heapline-tree)

(defconst heapline-table-rows 200
  "Number of rows that are shown at most.")

(defvar-local heapline-table--arguments nil
  "Arguments for heapline that make this table.")

(defvar heapline-table-mode-map
  (let ((map (make-sparse-keymap)))
    (set-keymap-parent map tabulated-list-mode-map)
    (define-key map (kbd "RET") #'heapline-table-find-source)
    (define-key map "j" #'heapline-table-find-source)
    (define-key map (kbd "M-.") #'heapline-table-find-source)
    map)
  "Keys of `heapline-table-mode'.")

(define-derived-mode heapline-table-mode tabulated-list-mode "Heapline-Table"
  "Show functions and what they allocate.

\\{heapline-table-mode-map}"
  :group 'heapline
  (setq tabulated-list-padding 1)
  (setq truncate-lines t)
  (setq-local bidi-paragraph-direction 'left-to-right)
  (setq-local revert-buffer-function #'heapline-table--refresh))

(defconst heapline-table--columns
  '((:allocated . "Allocated") (:share . "Share") (:inclusive . "With callees")
    (:live_at_peak . "At peak") (:live_at_end . "At end"))
  "Columns before the name: keys of figures in rows, and titles.
The share is that of the row in all that was allocated.")

(defun heapline-table--format (columns entries)
  "Return the format of a table with COLUMNS, then names, and ENTRIES."
  (vconcat
   (cl-loop for (key . title) in columns
            for index from 0
            for widths = (mapcar (lambda (entry)
                                   (string-width (aref (cadr entry) index)))
                                 entries)
            collect (list title
                          ;; Room for the mark of the sorted column.
                          (apply #'max (+ 2 (length title)) widths)
                          (heapline-table--by key)
                          :right-align t))
   '(("Name" 0 t))))

(defun heapline-table--by (key)
  "Return a function that compares two entries by the figures KEY."
  (let ((key (if (eq key :share) :allocated key)))
    (lambda (a b)
      (< (heapline-table--bytes (car a) key)
         (heapline-table--bytes (car b) key)))))

(defun heapline-table--bytes (row figures)
  "Return the estimated bytes of FIGURES, a key of ROW; 0 if not known."
  (or (plist-get (plist-get (plist-get row figures) :bytes) :value) 0))

(defun heapline-table ()
  "Show the functions of this profile in a table."
  (interactive)
  (unless (derived-mode-p 'heapline-tree-mode)
    (user-error "This is not a buffer of heapline"))
  (let ((arguments
         (append
          (list "hotspots" heapline-tree-trace "--json"
                "--by" heapline-tree-by
                "--rows" (number-to-string heapline-table-rows)
                "--sort" (if (member heapline-tree-moment '("end" "peak"))
                             heapline-tree-moment
                           "allocated"))
          (when heapline-tree-query
            (list "--where" heapline-tree-query))))
        (buffer (get-buffer-create
                 (format "*heapline table: %s*"
                         (file-name-nondirectory heapline-tree-trace)))))
    (with-current-buffer buffer
      (heapline-table-mode)
      (setq heapline-table--arguments arguments)
      (heapline-table--refresh))
    (pop-to-buffer-same-window buffer)))

(defun heapline-table--refresh (&rest _)
  "Read the trace again, in the background."
  (let ((buffer (current-buffer)))
    (heapline-run
     heapline-table--arguments
     (lambda (_notes)
       (let ((report (heapline-run-json)))
         (when (buffer-live-p buffer)
           (with-current-buffer buffer
             (heapline-table--receive report)))))
     (lambda (message)
       (when (buffer-live-p buffer)
         (with-current-buffer buffer
           (let ((inhibit-read-only t))
             (erase-buffer)
             (insert (propertize message 'face 'error)))))))))

(defun heapline-table--receive (report)
  "Show the rows of REPORT."
  (let* ((rows (plist-get report :rows))
         (columns (if (heapline-table--callees-p rows)
                      heapline-table--columns
                    (assq-delete-all :inclusive
                                     (copy-sequence heapline-table--columns))))
         (total (heapline-table--bytes (plist-get report :total) :allocated)))
    (setq tabulated-list-entries
          (mapcar (lambda (row)
                    (heapline-table--entry row (mapcar #'car columns) total))
                  rows))
    (setq tabulated-list-format
          (heapline-table--format columns tabulated-list-entries))
    (tabulated-list-init-header)
    (tabulated-list-print t)))

(defun heapline-table--callees-p (rows)
  "Return non-nil if any of ROWS has memory that its callees allocate."
  (cl-some (lambda (row)
             (and (plist-get row :inclusive)
                  (/= (heapline-table--bytes row :inclusive)
                      (heapline-table--bytes row :allocated))))
           rows))

(defun heapline-table--entry (row keys total)
  "Return the entry of ROW with the columns KEYS; its share is of TOTAL."
  (let ((label (plist-get row :label)))
    (list row
          (vconcat
           (mapcar (lambda (key) (heapline-table--cell row key total)) keys)
           (list (heapline-figures-sanitize
                  (if (plist-get label :place)
                      (format "%s  %s" (plist-get label :name)
                              (plist-get label :place))
                    (plist-get label :name))))))))

(defun heapline-table--cell (row key total)
  "Return the text of ROW in the column KEY; its share is of TOTAL."
  (cond ((eq key :share)
         (heapline-figures-percent (heapline-table--bytes row :allocated)
                                   total))
        ((plist-get row key)
         (heapline-figures-estimate
          (plist-get (plist-get row key) :bytes)))
        (t "")))

(defun heapline-table-find-source ()
  "Go to the source of the function at point."
  (interactive)
  (let ((label (plist-get (or (tabulated-list-get-id)
                              (user-error "No function on this line"))
                          :label)))
    (heapline-source-find (plist-get label :name) (plist-get label :place)
                          (plist-get label :file))))

(provide 'heapline-table)
;;; heapline-table.el ends here
