;;; heapline-run.el --- Run heapline without blocking Emacs  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Runs the heapline program as an asynchronous process, and reads its JSON.

;;; Code:

(require 'cl-lib)
(require 'subr-x)

(defgroup heapline nil
  "Heap profiles of OCaml and Rust programs."
  :group 'tools
  :prefix "heapline-")

(defcustom heapline-program "heapline"
  "Name or path of the heapline program."
  :type 'string)

(declare-function json-read "json")
(defvar json-object-type)
(defvar json-array-type)
(defvar json-key-type)
(defvar json-false)
(defvar json-null)

(defun heapline-run (arguments success failure)
  "Run heapline with ARGUMENTS and return its process.
When it has succeeded, call SUCCESS in the buffer of its output, with
what it printed to its standard error.  When it has failed, call FAILURE
with that.  Return nil if it cannot be started; FAILURE was called then.
After `heapline-run-cancel', neither is called."
  (if (executable-find heapline-program)
      (condition-case problem
          (heapline-run--start arguments success failure)
        (file-error
         (funcall failure (format "cannot run %s: %s" heapline-program
                                  (error-message-string problem)))
         nil))
    (funcall failure (format "cannot find %s; set `heapline-program'"
                             heapline-program))
    nil))

(defun heapline-run--start (arguments success failure)
  "Start heapline with ARGUMENTS; call SUCCESS or FAILURE at its end."
  (let* ((output (generate-new-buffer " *heapline output*"))
         (errors (generate-new-buffer " *heapline errors*"))
         (running 2)
         started process)
    (cl-labels ((clean-up ()
                  (kill-buffer output)
                  (kill-buffer errors))
                (ended (ended-process _event)
                  (unless (process-live-p ended-process)
                    ;; The pipe may end after the program, with its last lines.
                    (setq running (1- running))
                    (when (and started (= running 0))
                      (unwind-protect
                          (unless (process-get process 'heapline-cancelled)
                            (heapline-run--report process output errors
                                                  success failure))
                        (clean-up))))))
      (let ((pipe (make-pipe-process
                   :name "heapline-errors" :buffer errors :noquery t
                   :coding 'utf-8-unix :sentinel #'ended)))
        (unwind-protect
            (setq process (make-process
                           :name "heapline" :buffer output :noquery t
                           :command (cons heapline-program arguments)
                           :connection-type 'pipe :coding 'utf-8-unix
                           :stderr pipe :sentinel #'ended)
                  started process)
          (unless started
            (delete-process pipe)
            (clean-up)))))))

(defun heapline-run--report (process output errors success failure)
  "Call SUCCESS or FAILURE after PROCESS has ended.
OUTPUT and ERRORS are the buffers of what it printed."
  (let ((messages (with-current-buffer errors
                    (string-trim-right (buffer-string))))
        (status (process-exit-status process)))
    (cond ((not (eq (process-status process) 'exit))
           (funcall failure
                    (string-trim-left
                     (format "%s\nheapline was ended by signal %d"
                             messages status))))
          ((/= status 0)
           (funcall failure
                    (if (string-empty-p messages)
                        (format "heapline exited with code %d" status)
                      messages)))
          (t (with-current-buffer output
               (goto-char (point-min))
               (funcall success messages))))))

(defun heapline-run-cancel (process)
  "End PROCESS of `heapline-run', unless it has ended, and ignore its result."
  (when (process-live-p process)
    (process-put process 'heapline-cancelled t)
    (delete-process process)))

(defun heapline-run-json ()
  "Read a JSON value at point: objects as plists, arrays as lists, null as nil."
  (if (fboundp 'json-parse-buffer)
      (json-parse-buffer :object-type 'plist :array-type 'list
                         :null-object nil :false-object nil)
    ;; Emacs 27 to 29 may be built without its JSON library.
    (require 'json)
    (let ((json-object-type 'plist)
          (json-array-type 'list)
          (json-key-type 'keyword)
          (json-false nil)
          (json-null nil))
      (json-read))))

(provide 'heapline-run)
;;; heapline-run.el ends here
