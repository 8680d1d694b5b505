;;; heapline-node.el --- The call tree of a heapline report  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Makes a tree of nodes of the report that `heapline tree --json' prints.
;; Nodes have keys that are the same in later reports on the same program, so
;; that point and folding can be kept.

;;; Code:

(require 'cl-lib)

(cl-defstruct heapline-node
  "A node of a call tree."
  (key nil :documentation "String that identifies the node in later reports.")
  (parent nil :documentation "The node above, or nil for the total.")
  (children nil :documentation "The nodes below, largest first.")
  (depth 0 :documentation "Distance from the total.")
  (name nil :documentation "Name of the function.")
  (place nil :documentation "FILE:LINE:COLUMNS, or nil.")
  (file nil :documentation "Source file, or nil.")
  (kind nil :documentation "A string: `total', `call', `site' or `other'.")
  (total nil :documentation "Figures with everything below.")
  (own nil :documentation "Figures of the function itself."))

(defun heapline-node-samples (node)
  "Return the number of samples of NODE."
  (plist-get (heapline-node-total node) :samples))

(defun heapline-node-bytes (node)
  "Return the estimated bytes of NODE, or nil if they are not known."
  (plist-get (plist-get (heapline-node-total node) :bytes) :value))

(defun heapline-node-other-p (node)
  "Return non-nil if NODE stands for several that are below the threshold."
  (equal (heapline-node-kind node) "other"))

(defun heapline-node--key (parent kind label)
  "Return the key of the child of PARENT with KIND and LABEL."
  ;; A hash: the keys of a deep stack would be long.
  (md5 (concat (heapline-node-key parent) "\n" kind "\t"
               ;; The number of merged nodes changes: "other (3)".
               (unless (equal kind "other")
                 (concat (plist-get label :name) "\t"
                         (plist-get label :place))))
       nil nil 'utf-8 t))

(defun heapline-node-tree (report)
  "Return the total of REPORT, with the tree of its nodes below."
  (let* ((root (make-heapline-node :key "" :name "total" :kind "total"
                                   :total (plist-get report :total)))
         (rows (plist-get report :nodes))
         (nodes (make-vector (length rows) nil))
         (index 0))
    (dolist (row rows)
      (let* ((above (plist-get row :parent))
             (parent (if above (aref nodes above) root))
             (label (plist-get row :label))
             (kind (plist-get row :kind))
             (node (make-heapline-node
                    :key (heapline-node--key parent kind label)
                    :parent parent
                    :depth (1+ (heapline-node-depth parent))
                    :name (plist-get label :name)
                    :place (plist-get label :place)
                    :file (plist-get label :file)
                    :kind kind
                    :total (plist-get row :total)
                    :own (plist-get row :own))))
        (push node (heapline-node-children parent))
        (aset nodes index node)
        (setq index (1+ index))))
    (cl-flet ((in-order (node)
			(setf (heapline-node-children node)
			      (nreverse (heapline-node-children node)))))
      (in-order root)
      (mapc #'in-order nodes))
    root))

(defun heapline-node-visible-children (node min-samples)
  "Return the children of NODE that have at least MIN-SAMPLES samples."
  (cl-remove-if (lambda (child) (< (heapline-node-samples child) min-samples))
                (heapline-node-children node)))

(defun heapline-node-visible (root min-samples open-p)
  "Return the nodes to show below and with ROOT, in order.
Show the children of those for which OPEN-P returns non-nil, but only
those with at least MIN-SAMPLES samples."
  ;; Not recursive: stacks can be deeper than Lisp's.
  (let ((pending (list root))
        visible)
    (while pending
      (let ((node (pop pending)))
        (push node visible)
        (when (funcall open-p node)
          (setq pending
                (append (heapline-node-visible-children node min-samples)
                        pending)))))
    (nreverse visible)))

(defun heapline-node-and-below (node)
  "Return NODE and all nodes below it."
  (heapline-node-visible node 0 (lambda (_) t)))

(provide 'heapline-node)
;;; heapline-node.el ends here
