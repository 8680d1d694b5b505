;;; heapline.el --- Heap profiles of OCaml and Rust programs  -*- lexical-binding: t; -*-

;; Author: The Heapline developers
;; Version: 0.1.0
;; Package-Requires: ((emacs "27.1"))
;; Keywords: tools, processes
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; `M-x heapline-top' shows where the memory of a program is: a running
;; process, a trace, or a program to start.  It needs the heapline program.
;;
;; The tree goes from allocation sites to their callers, or from the program's
;; entry down.  TAB folds and unfolds, g reads the trace again, j goes to the
;; source; C-h m lists all keys.  docs/emacs.md of heapline has more.

;;; Code:

(require 'heapline-record)
(require 'heapline-tree)
(autoload 'heapline-table "heapline-table" nil t)
(autoload 'heapline-flame "heapline-flame" nil t)

;;;###autoload
(defun heapline-top (subject)
  "Show where the memory of SUBJECT is.
SUBJECT is a process id, the file name of a trace, or a command that
starts a program, which is recorded then."
  (interactive
   ;; So that SPC inserts a space, for the arguments of a program.
   (list (let ((minibuffer-completing-file-name t))
           (completing-read "Process id, trace or program: "
                            #'completion-file-name-table))))
  (let ((subject (string-trim subject)))
    (cond ((string-empty-p subject)
           (user-error "Give a process id, a trace or a program"))
          ((string-match-p "\\`[0-9]+\\'" subject)
           (heapline-process (string-to-number subject)))
          ((heapline--trace-p subject)
           (heapline-trace subject))
          (t (heapline-record subject)))))

(defun heapline--trace-p (name)
  "Return non-nil if NAME is a file that is not a program."
  (let ((file (expand-file-name (substitute-in-file-name name))))
    (and (file-exists-p file)
         (not (and (file-regular-p file) (file-executable-p file))))))

;;;###autoload
(defun heapline-trace (trace)
  "Show TRACE, a file, as a tree."
  (interactive "fTrace: ")
  (pop-to-buffer-same-window
   (heapline-tree-open (substitute-in-file-name trace))))

;;;###autoload
(defun heapline-process (pid)
  "Show the memory of the process PID as a tree.
If it is not recorded yet, attach to it."
  (interactive (list (heapline--read-process)))
  (let ((trace (condition-case nil
                   (heapline-record-trace-of pid)
                 (file-missing (user-error "There is no process %d" pid))
                 (file-error
                  (user-error "Process %d belongs to another user" pid)))))
    (pop-to-buffer-same-window (if trace
                                   (heapline-tree-open trace)
                                 (heapline-record-attach pid)))))

(defun heapline--read-process ()
  "Ask for a process of the user, and return its id."
  (let* ((processes
          (delq nil
                (mapcar (lambda (pid)
                          (let ((attributes (process-attributes pid)))
                            (when (eql (alist-get 'euid attributes)
                                       (user-uid))
                              (cons (format "%d %s" pid
                                            (alist-get 'comm attributes))
                                    pid))))
                        (list-system-processes))))
         (answer (completing-read "Process: " processes)))
    (or (cdr (assoc answer processes))
        (and (string-match "\\`[0-9]+" answer)
             (string-to-number (match-string 0 answer)))
        (user-error "Give a process id"))))

;;;###autoload
(defun heapline-record (command)
  "Start the shell COMMAND, record it, and show its memory as a tree."
  (interactive (list (read-shell-command "Program: ")))
  (pop-to-buffer-same-window (heapline-record-program command)))

(provide 'heapline)
;;; heapline.el ends here
