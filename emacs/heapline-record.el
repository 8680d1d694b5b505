;;; heapline-record.el --- Traces of running programs  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Finds the trace that a process is recorded to, attaches to a process, or
;; starts a program under heapline.  The recorder has a buffer of its own.

;;; Code:

(require 'cl-lib)
(require 'comint)
(require 'subr-x)
(require 'heapline-run)
(require 'heapline-tree)

(defun heapline-record-trace-of (pid)
  "Return the trace that the process PID is recorded to, or nil.
The recorder maps its last events, FILE.tail, into the process."
  (with-temp-buffer
    (insert-file-contents (format "/proc/%d/maps" pid))
    ;; The process may be another user's, and choose the name of a host.
    (let (found file-name-handler-alist)
      (while (and (not found)
                  (re-search-forward "^[^/\n]*\\(/.*\\)\\.tail$" nil t))
        (let ((trace (match-string 1)))
          ;; A process in a container has its own directories.
          (setq found (cl-find-if #'file-exists-p
                                  (list trace
                                        (format "/proc/%d/root%s"
                                                pid trace))))))
      found)))

(defun heapline-record-attach (pid)
  "Attach to the process PID, and show its tree.
When the buffer of the tree is killed, the process runs on unrecorded."
  (let* ((trace (heapline-record--new-trace (format "process-%d" pid)))
         (buffer (heapline-record--start
                  (format "attach %d" pid)
                  (list heapline-program "attach" (number-to-string pid)
                        "-o" trace)
                  trace)))
    (with-current-buffer buffer
      (add-hook 'kill-buffer-hook #'heapline-record--detach nil t))
    buffer))

(defun heapline-record--detach ()
  "Interrupt the recorder of this buffer, so that it detaches."
  (when (process-live-p heapline-tree-recorder)
    (interrupt-process heapline-tree-recorder)))

(defun heapline-record-program (command)
  "Record the shell COMMAND, and show its tree.
It runs in a buffer of its own, in the current directory."
  (let* ((name (file-name-nondirectory
                (or (car (split-string command)) "program")))
         (trace (heapline-record--new-trace name)))
    (heapline-record--start
     name
     (list shell-file-name shell-command-switch
           (format "exec %s record -o %s -- %s"
                   (shell-quote-argument heapline-program)
                   (shell-quote-argument trace)
                   command))
     trace)))

(defun heapline-record--new-trace (name)
  "Return the name of a new trace of the program NAME."
  (expand-file-name (concat (replace-regexp-in-string "[^[:alnum:]._-]" "_"
                                                      name)
                            ".ctf")
                    (make-temp-file "heapline-" t)))

(defun heapline-record--start (name command trace)
  "Start COMMAND, a list, in a buffer for NAME; return the tree of TRACE."
  (let* ((output (generate-new-buffer (format "*heapline output: %s*" name)))
         (process (progn
                    (apply #'make-comint-in-buffer "heapline-record" output
                           (car command) nil (cdr command))
                    (get-buffer-process output)))
         (tree (heapline-tree-open trace process)))
    ;; Before comint adds a line about the end to the output.
    (add-function :before (process-sentinel process)
                  (lambda (process _event)
                    (unless (process-live-p process)
                      (heapline-record--ended tree output trace))))
    tree))

(defun heapline-record--ended (tree output trace)
  "Show the end of a recording in the buffer TREE.
If TRACE was not written, show what the recorder said in OUTPUT."
  (unless (file-exists-p trace)
    (ignore-errors (delete-directory (file-name-directory trace))))
  (when (buffer-live-p tree)
    (with-current-buffer tree
      ;; What reads the trace would fail too, and hide this error by its own.
      (heapline-tree-stop)
      (if (or (file-exists-p trace) (not (buffer-live-p output)))
          (heapline-tree-refresh)
        (heapline-tree-fail
         (with-current-buffer output
           (string-trim (buffer-substring-no-properties (point-min)
                                                        (point-max)))))))))

(provide 'heapline-record)
;;; heapline-record.el ends here
