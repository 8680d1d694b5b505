;;; heapline-tree.el --- Show a heap profile as a call tree  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The buffer of `heapline-top': a call tree that is folded and unfolded, from
;; allocation sites to their callers or from the program's entry down.  Each
;; refresh reads the trace again; point, folding, threshold and the other
;; settings stay.  Keys are those of Emacs's own profiler where it has them.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'heapline-draw)
(require 'heapline-node)
(require 'heapline-run)
(require 'heapline-source)

(declare-function heapline-table "heapline-table")
(declare-function heapline-flame "heapline-flame")

(defcustom heapline-refresh-interval 2
  "Seconds between refreshes of the profile of a program that runs."
  :type 'number
  :group 'heapline)

(defcustom heapline-min-share "1%"
  "Share of the total below which nodes are merged into `other'."
  :type 'string
  :group 'heapline)

(defcustom heapline-min-samples 1
  "Number of samples below which nodes are not shown."
  :type 'integer
  :group 'heapline)

(defcustom heapline-group-by "site"
  "What a node of the tree is: a source line, function, file, module or crate."
  :type '(choice (const "site") (const "function") (const "file")
                 (const "module") (const "crate"))
  :group 'heapline)

(defvar-local heapline-tree-trace nil "Absolute name of the trace.")
(defvar-local heapline-tree-recorder nil
  "Process that records the trace for this buffer, or nil.")
(defvar-local heapline-tree-root nil "Total of the latest report.")
(defvar-local heapline-tree-report nil "The latest report, a plist.")
(defvar-local heapline-tree-error nil "Error of the latest refresh, or nil.")
(defvar-local heapline-tree-notes nil "What heapline said about the trace.")
(defvar-local heapline-tree-live nil "Non-nil if the program is recorded now.")
(defvar-local heapline-tree-bottom-up t "Non-nil for sites before callers.")
(defvar-local heapline-tree-moment "end"
  "When blocks are live: `end', `peak', a time, or nil for all allocated.")
(defvar-local heapline-tree-by "site" "See `heapline-group-by'.")
(defvar-local heapline-tree-min-share "1%" "See `heapline-min-share'.")
(defvar-local heapline-tree-min-samples 1 "See `heapline-min-samples'.")
(defvar-local heapline-tree-query nil "Query that selects blocks, or nil.")
(defvar-local heapline-tree-auto nil "Non-nil to refresh by a timer.")
(defvar-local heapline-tree--open nil "Hash table: keys of unfolded nodes.")
(defvar-local heapline-tree--process nil "Process of the refresh, or nil.")
(defvar-local heapline-tree--timer nil "Timer of the next refresh, or nil.")

(defvar heapline-tree-mode-map
  (let ((map (make-sparse-keymap)))
    (set-keymap-parent map special-mode-map)
    (define-key map (kbd "TAB") #'heapline-tree-toggle)
    (define-key map (kbd "RET") #'heapline-tree-toggle)
    (define-key map (kbd "<backtab>") #'heapline-tree-fold-all)
    (define-key map "+" #'heapline-tree-unfold-below)
    (define-key map "*" #'heapline-tree-unfold-below)
    (define-key map "^" #'heapline-tree-up)
    (define-key map "n" #'next-line)
    (define-key map "p" #'previous-line)
    (define-key map "j" #'heapline-tree-find-source)
    (define-key map (kbd "M-.") #'heapline-tree-find-source)
    (define-key map "o" #'heapline-tree-find-source-other-window)
    (define-key map "d" #'heapline-tree-describe)
    (define-key map "B" #'heapline-tree-reverse)
    (define-key map "b" #'heapline-tree-set-grouping)
    (define-key map "s" #'heapline-tree-next-moment)
    (define-key map "t" #'heapline-tree-set-threshold)
    (define-key map "w" #'heapline-tree-set-query)
    (define-key map "a" #'heapline-tree-toggle-auto)
    (define-key map "T" #'heapline-table)
    (define-key map "f" #'heapline-flame)
    (define-key map "O" #'heapline-tree-show-output)
    (define-key map [mouse-2] #'heapline-tree-mouse)
    map)
  "Keys of `heapline-tree-mode'.")

(define-derived-mode heapline-tree-mode special-mode "Heapline"
  "Show a heap profile as a call tree.

\\{heapline-tree-mode-map}"
  :group 'heapline
  (setq truncate-lines t)
  (setq buffer-undo-list t)
  (setq-local bidi-paragraph-direction 'left-to-right)
  (setq-local revert-buffer-function #'heapline-tree--revert)
  (setq heapline-tree--open (make-hash-table :test #'equal)
        heapline-tree-by heapline-group-by
        heapline-tree-min-share heapline-min-share
        heapline-tree-min-samples heapline-min-samples)
  (puthash "" t heapline-tree--open)
  (setq header-line-format '(:eval (heapline-tree--header)))
  (hl-line-mode 1)
  (add-hook 'kill-buffer-hook #'heapline-tree-stop nil t))

(defun heapline-tree-open (trace &optional recorder)
  "Show TRACE in a buffer of its own and return the buffer.
RECORDER is the process that writes the trace for this buffer, if any."
  (setq trace (expand-file-name trace))
  (let ((buffer (get-buffer-create
                 (format "*heapline: %s*" (file-name-nondirectory trace)))))
    (with-current-buffer buffer
      (unless (and (derived-mode-p 'heapline-tree-mode)
                   (equal heapline-tree-trace trace))
        (when (derived-mode-p 'heapline-tree-mode)
          (setq buffer (generate-new-buffer (buffer-name)))
          (set-buffer buffer))
        (heapline-tree-mode)
        (setq heapline-tree-trace trace))
      (when recorder
        (setq heapline-tree-recorder recorder))
      (heapline-tree-refresh))
    buffer))

;;; Refresh

(defun heapline-tree-filter-arguments ()
  "Return the arguments for heapline that select the blocks of this buffer."
  (append (when heapline-tree-moment (list "--live" heapline-tree-moment))
          (when heapline-tree-query (list "--where" heapline-tree-query))))

(defun heapline-tree--arguments ()
  "Return the arguments for heapline that make the report of this buffer."
  (append (list "tree" heapline-tree-trace "--json" "--details"
                "--by" heapline-tree-by "--min" heapline-tree-min-share)
          (when heapline-tree-bottom-up (list "--bottom-up"))
          (heapline-tree-filter-arguments)))

(defun heapline-tree-refresh ()
  "Read the trace again, in the background."
  (interactive)
  (heapline-tree-stop)
  (if (and heapline-tree-recorder
           (not (file-exists-p heapline-tree-trace))
           (or heapline-tree-error (process-live-p heapline-tree-recorder)))
      ;; The program has just been started, or could not be recorded: the
      ;; error says why.
      (when (process-live-p heapline-tree-recorder)
        (heapline-tree--schedule 0.2))
    (let ((buffer (current-buffer)))
      (cl-flet ((in-buffer (function argument)
			   (when (buffer-live-p buffer)
			     (let ((report (and (eq function #'heapline-tree--receive)
						(heapline-run-json))))
			       (with-current-buffer buffer
				 (setq heapline-tree--process nil)
				 (funcall function argument report)
				 (force-mode-line-update))))))
        (setq heapline-tree--process
              (heapline-run
               (heapline-tree--arguments)
               (lambda (notes) (in-buffer #'heapline-tree--receive notes))
               (lambda (message) (in-buffer #'heapline-tree-fail message))))))
    (force-mode-line-update)))

(defun heapline-tree--revert (&rest _)
  "Refresh, as `revert-buffer-function'."
  (heapline-tree-refresh))

(defun heapline-tree--receive (notes report)
  "Show REPORT; NOTES is what heapline said about the trace."
  (let ((was-live heapline-tree-live)
        (is-first (null heapline-tree-root)))
    (setq heapline-tree-error nil
          heapline-tree-notes notes
          heapline-tree-report report
          heapline-tree-root (heapline-node-tree report)
          heapline-tree-live (string-match-p "is still recording to" notes))
    (cond ((and heapline-tree-live (not was-live))
           (setq heapline-tree-auto t))
          ((and was-live (not heapline-tree-live))
           (setq heapline-tree-auto nil)
           (message "The recording of %s has ended"
                    (file-name-nondirectory heapline-tree-trace))))
    (heapline-tree--render)
    (when is-first
      (heapline-tree--go-to-total)))
  (when heapline-tree-auto
    (heapline-tree--schedule heapline-refresh-interval)))

(defun heapline-tree--go-to-total ()
  "Put point on the line of the total, in all windows."
  (heapline-draw-go-to '(""))
  (dolist (window (get-buffer-window-list nil nil t))
    (set-window-point window (point))))

(defun heapline-tree-fail (message &optional _report)
  "Show MESSAGE, an error of heapline, above the tree."
  ;; Lines of the buffer are truncated, those of the echo area are not.
  (unless (equal message heapline-tree-error)
    (message "%s" message))
  (heapline-tree--cancel-timer)
  (setq heapline-tree-error message)
  (heapline-tree--render)
  ;; A program that has just been started may not have written anything yet.
  (when (or heapline-tree-auto (process-live-p heapline-tree-recorder))
    (heapline-tree--schedule heapline-refresh-interval)))

(defun heapline-tree--schedule (seconds)
  "Refresh the current buffer after SECONDS."
  (heapline-tree--cancel-timer)
  (setq heapline-tree--timer
        (run-at-time seconds nil #'heapline-tree--tick (current-buffer))))

(defun heapline-tree--tick (buffer)
  "Refresh BUFFER if somebody sees it, else look again later."
  (when (buffer-live-p buffer)
    (with-current-buffer buffer
      (if (get-buffer-window buffer t)
          (heapline-tree-refresh)
        (heapline-tree--schedule heapline-refresh-interval)))))

(defun heapline-tree--cancel-timer ()
  "Cancel the next refresh."
  (when heapline-tree--timer
    (cancel-timer heapline-tree--timer)
    (setq heapline-tree--timer nil)))

(defun heapline-tree-stop ()
  "Stop the timer and the process of this buffer."
  (heapline-tree--cancel-timer)
  (heapline-run-cancel heapline-tree--process)
  (setq heapline-tree--process nil))

(defun heapline-tree-toggle-auto ()
  "Start or stop to refresh every `heapline-refresh-interval' seconds."
  (interactive)
  (setq heapline-tree-auto (not heapline-tree-auto))
  (if heapline-tree-auto
      (heapline-tree-refresh)
    (heapline-tree--cancel-timer))
  (message (if heapline-tree-auto
               (format "Refresh every %s s" heapline-refresh-interval)
             "No automatic refresh"))
  (force-mode-line-update))

;;; State of the buffer

(defun heapline-tree--header ()
  "Return the header line: the program and the settings."
  (let ((program (plist-get (plist-get heapline-tree-report :subject)
                            :program)))
    ;; Header lines have constructs with %, as mode lines have.
    (replace-regexp-in-string
     "%" "%%"
     (concat
      " "
      (propertize (heapline-figures-sanitize
                   ;; The trace's name of the program may be that of a host.
                   (let (file-name-handler-alist)
                     (file-name-nondirectory
                      (if (string-empty-p (or program ""))
                          heapline-tree-trace
			program))))
                  'face 'bold)
      "  " (string-join
            (delq nil
                  (list (heapline-tree--moment-text)
			(if heapline-tree-bottom-up "bottom-up" "top-down")
			(concat "by " heapline-tree-by)
			(concat "min " heapline-tree-min-share)
			(when (> heapline-tree-min-samples 1)
                          (format "min %d samples" heapline-tree-min-samples))
			(when heapline-tree-query
                          (concat "where " heapline-tree-query))
			(cond (heapline-tree--process "reading...")
                              (heapline-tree-auto
                               (format "every %s s" heapline-refresh-interval))
                              (heapline-tree-live "paused"))))
            ", ")))))

(defun heapline-tree--moment-text ()
  "Return the words for `heapline-tree-moment'."
  (concat
   (cond ((null heapline-tree-moment) "allocated")
         ((and heapline-tree-live (equal heapline-tree-moment "end"))
          "live now")
         ((member heapline-tree-moment '("end" "peak"))
          (concat "live at the " heapline-tree-moment))
         (t (concat "live at " heapline-tree-moment)))
   (when (plist-get (plist-get heapline-tree-report :subject) :attached_to)
     " since attaching")))

(defun heapline-tree--open-p (node)
  "Return non-nil if NODE is unfolded."
  (gethash (heapline-node-key node) heapline-tree--open))

(defun heapline-tree--render ()
  "Draw the buffer again; keep point in all windows."
  (heapline-draw-keeping-place
   (lambda ()
     (with-silent-modifications
       (erase-buffer)
       (when heapline-tree-error
         (insert (propertize (concat heapline-tree-error "\n\n")
                             'face 'error)))
       (cond
        (heapline-tree-root
         (heapline-draw-tree
          (heapline-node-visible heapline-tree-root heapline-tree-min-samples
                                 #'heapline-tree--open-p)
          :total heapline-tree-root
          :open-p #'heapline-tree--open-p
          :min-samples heapline-tree-min-samples
          :own (not heapline-tree-bottom-up))
         (heapline-tree--insert-notes))
        ((not heapline-tree-error)
         (insert "Waiting for the program...\n")))))))

(defun heapline-tree--insert-notes ()
  "Insert the explanations below the tree."
  (let ((threshold (plist-get heapline-tree-report :threshold)))
    (insert
     (propertize
      (concat
       "\n"
       (when (= (heapline-node-samples heapline-tree-root) 0)
         "No sampled blocks, or none that match the filter.\n")
       (when threshold
         (format "Nodes below %s %% are merged into \"other\"; t changes that.\n"
                 (heapline-figures-percent threshold 1.0)))
       (unless (plist-get (plist-get heapline-tree-report :subject) :is_exact)
         "± is the 95 % interval.\n")
       (unless (string-empty-p (or heapline-tree-notes ""))
         (concat heapline-tree-notes "\n")))
      'face 'shadow))))

;;; Folding

(defun heapline-tree-node-at-point ()
  "Return the node at point; signal an error if there is none."
  (or (heapline-draw-node-at (point))
      (user-error "No node on this line")))

(defun heapline-tree-toggle ()
  "Fold or unfold the node at point."
  (interactive)
  (let* ((node (heapline-tree-node-at-point))
         (children (heapline-node-visible-children node
                                                   heapline-tree-min-samples)))
    (cond ((null children) (message "Nothing below"))
          ((heapline-tree--open-p node)
           (remhash (heapline-node-key node) heapline-tree--open))
          (t
           (puthash (heapline-node-key node) t heapline-tree--open)
           ;; A chain of single callers is one thing.
           (while (and children (null (cdr children)))
             (puthash (heapline-node-key (car children)) t heapline-tree--open)
             (setq children (heapline-node-visible-children
                             (car children) heapline-tree-min-samples)))))
    (heapline-tree--render)))

(defun heapline-tree-unfold-below ()
  "Unfold everything below the node at point."
  (interactive)
  (dolist (node (heapline-node-and-below (heapline-tree-node-at-point)))
    (puthash (heapline-node-key node) t heapline-tree--open))
  (heapline-tree--render))

(defun heapline-tree-fold-all ()
  "Fold all nodes but the total."
  (interactive)
  (clrhash heapline-tree--open)
  (puthash "" t heapline-tree--open)
  (heapline-tree--render))

(defun heapline-tree-up ()
  "Go to the node above the one at point."
  (interactive)
  (let ((parent (heapline-node-parent (heapline-tree-node-at-point))))
    (if parent
        (heapline-draw-go-to (list (heapline-node-key parent)))
      (user-error "This is the total"))))

(defun heapline-tree-mouse (event)
  "Fold or unfold the node at EVENT, or find its source."
  (interactive "e")
  (mouse-set-point event)
  (if (eq (get-text-property (point) 'heapline-part) 'source)
      (heapline-tree-find-source)
    (heapline-tree-toggle)))

;;; Settings

(defun heapline-tree-reverse ()
  "Change between sites first and callers first."
  (interactive)
  (setq heapline-tree-bottom-up (not heapline-tree-bottom-up))
  (heapline-tree-refresh))

(defun heapline-tree-next-moment (moment)
  "Show what is live at MOMENT.
Cycle through the end, the peak and everything allocated; with a prefix
argument, read a time such as `10s' or `90%'."
  (interactive
   (list (cond (current-prefix-arg
                (read-string "Live at (peak, end, 10s, 90%): "))
               ((null heapline-tree-moment) "end")
               ((equal heapline-tree-moment "end") "peak"))))
  (setq heapline-tree-moment moment)
  (heapline-tree-refresh))

(defun heapline-tree-set-threshold (threshold)
  "Hide nodes below THRESHOLD: a share such as `2%', or a number of samples."
  (interactive
   (list (read-string "Hide nodes below (2%, or a number of samples): ")))
  (cond ((string-match-p "\\`[0-9]+\\'" threshold)
         (setq heapline-tree-min-samples (string-to-number threshold))
         (heapline-tree--render)
         (force-mode-line-update))
        (t
         (setq heapline-tree-min-share threshold)
         (heapline-tree-refresh))))

(defun heapline-tree-set-grouping (by)
  "Group frames BY site, function, file, module or crate."
  (interactive
   (list (completing-read "Group by: "
                          '("site" "function" "file" "module" "crate") nil t)))
  (setq heapline-tree-by by)
  (heapline-tree-refresh))

(defun heapline-tree-set-query (query)
  "Show only the blocks of QUERY; all if it is empty."
  (interactive
   (list (read-string "Where (such as size >= 64KiB): " heapline-tree-query)))
  (setq heapline-tree-query (unless (string-blank-p query) query))
  (heapline-tree-refresh))

;;; Source and details

(defun heapline-tree-find-source (&optional other-window)
  "Go to the source of the node at point, in another window if OTHER-WINDOW."
  (interactive "P")
  (let ((node (heapline-tree-node-at-point)))
    (when (member (heapline-node-kind node) '("total" "other"))
      (user-error "This is not a single place"))
    (heapline-source-find (heapline-node-name node) (heapline-node-place node)
                          (heapline-node-file node) other-window)))

(defun heapline-tree-find-source-other-window ()
  "Go to the source of the node at point in another window."
  (interactive)
  (heapline-tree-find-source t))

(defun heapline-tree-show-output ()
  "Show the buffer of the program that was started or attached to."
  (interactive)
  (let ((output (and heapline-tree-recorder
                     (process-buffer heapline-tree-recorder))))
    (if (buffer-live-p output)
        (pop-to-buffer output)
      (user-error "Nothing was started for this buffer"))))

(defun heapline-tree-describe ()
  "Describe the node at point in the echo area."
  (interactive)
  (message "%s" (heapline-draw-description (heapline-tree-node-at-point)
                                           heapline-tree-root)))

(provide 'heapline-tree)
;;; heapline-tree.el ends here
