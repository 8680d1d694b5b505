;;; heapline-source.el --- Find the source of a function in a profile  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Traces name source files as the compiler saw them: relative to the
;; directory of the build, or with a path of the machine of the build.  This
;; looks for them in the directories of the user, and asks as a last resort.
;;
;; A trace may come from anybody, so its names are only those of local files:
;; none makes Emacs connect to a host, decrypt or unpack anything.

;;; Code:

(require 'cl-lib)
(require 'pulse)
(require 'subr-x)

(defcustom heapline-source-directories nil
  "Directories with the sources of recorded programs.
They are searched before the current directory and the directories above
it.  The directory of a file that was asked for is added."
  :type '(repeat directory)
  :group 'heapline)

(defconst heapline-source--place-regexp
  "\\`\\(.+?\\):\\([0-9]+\\)\\(?::\\([0-9]+\\)\\(?:-\\([0-9]+\\)\\)?\\)?\\'"
  "Regexp of places: FILE:LINE, FILE:LINE:START or FILE:LINE:START-END.")

(defun heapline-source-parse (place)
  "Return PLACE as a list of file, line, first and last column, or nil."
  (when (and place (string-match heapline-source--place-regexp place))
    (cl-flet ((number (group)
                      (let ((text (match-string group place)))
			(and text (string-to-number text)))))
      (list (match-string 1 place) (number 2) (number 3) (number 4)))))

(defun heapline-source-find (name place file &optional other-window)
  "Go to PLACE, or to the definition of NAME in FILE if PLACE is nil.
With OTHER-WINDOW, show it in another window."
  (let* ((parsed (heapline-source-parse place))
         (wanted (or (car parsed) file)))
    (unless wanted
      (user-error "The source of %s is not known" name))
    (let ((found (or (heapline-source--locate wanted)
                     (heapline-source--ask wanted))))
      (funcall (if other-window #'find-file-other-window #'find-file) found)
      (widen)
      (if parsed
          (apply #'heapline-source--go-to (cdr parsed))
        (heapline-source--go-to-definition name)))))

(defun heapline-source--locate (file)
  "Return an existing file for FILE, as a trace names it, or nil."
  (if (and (string-match-p "\\`\\(?:/\\|[[:alpha:]]:/\\)[^/]" file)
           (heapline-source--regular-p file ""))
      file
    (let ((directories (append heapline-source-directories
                               (heapline-source--directories-above
                                default-directory))))
      ;; The longest end of the name that exists anywhere.
      (cl-loop for end in (heapline-source--ends file)
               thereis (cl-loop for directory in directories
                                for root = (file-name-as-directory
                                            (expand-file-name directory))
                                for path = (concat root end)
                                when (heapline-source--regular-p path root)
                                return path)))))

(defun heapline-source--regular-p (path directory)
  "Return non-nil if PATH, a name of a trace in DIRECTORY, is a regular file.
The directory may be on another host, but the name must not add a handler:
`/ssh:host:/file' would connect, and `file.gpg' ask for a passphrase."
  (and (equal (heapline-source--handlers path)
              (heapline-source--handlers directory))
       (file-regular-p path)))

(defun heapline-source--handlers (path)
  "Return the functions that would open PATH in place of Emacs itself."
  (cl-loop for (regexp . handler) in file-name-handler-alist
           when (string-match-p regexp path) collect handler))

(defun heapline-source--ends (file)
  "Return FILE without its first 0, 1, 2, ... directories."
  (let ((parts (cl-remove-if #'heapline-source--not-a-name-p
                             (split-string file "/"))))
    (cl-loop for rest on parts collect (string-join rest "/"))))

(defun heapline-source--not-a-name-p (part)
  "Return non-nil if PART of a path is not the name of a file in a directory."
  (member part '("" "." "..")))

(defun heapline-source--directories-above (directory)
  "Return DIRECTORY and those that it is in, innermost first."
  (let (directories)
    (while directory
      (push directory directories)
      (let ((above (file-name-directory (directory-file-name directory))))
        (setq directory (unless (equal above directory) above))))
    (nreverse directories)))

(defun heapline-source--ask (file)
  "Ask the user for FILE, and remember the directory that it is relative to."
  (let* ((initial (car (last (heapline-source--ends file))))
         ;; The minibuffer gives a meaning to more names.
         (plain (and initial
                     (string-match-p "\\`[[:alnum:]_][[:alnum:]_.-]*\\'"
                                     initial)
                     initial))
         (found (read-file-name (format "Source file %s: " file)
                                nil nil t plain))
         (root (cl-loop for end in (heapline-source--ends file)
                        when (string-suffix-p (concat "/" end)
                                              (expand-file-name found))
                        return (string-remove-suffix
                                end (expand-file-name found)))))
    (unless (file-regular-p found)
      (user-error "%s is not a file" found))
    (when root
      (cl-pushnew root heapline-source-directories :test #'equal))
    found))

(defun heapline-source--go-to (line &optional start end)
  "Go to LINE and column START; highlight it up to column END."
  (goto-char (point-min))
  (forward-line (1- line))
  (let ((last (line-end-position))
        (first (line-beginning-position)))
    (goto-char (min last (+ first (or start 0))))
    (pulse-momentary-highlight-region
     (point)
     (if (and end (> end (or start 0)))
         ;; A place can extend over several lines.
         (min (point-max) (+ first end))
       last))))

(defun heapline-source--go-to-definition (name)
  "Go to the definition of the last part of NAME, if it can be found."
  (let* ((short (car (last (split-string name "[.:]+" t))))
         (regexp (and short
                      (concat "\\_<\\(?:let\\|and\\|rec\\|method"
                              "\\|external\\|fn\\)[ \t\n]+"
                              (regexp-quote short) "\\_>")))
         (found (and regexp
                     (save-excursion
                       (goto-char (point-min))
                       (let ((case-fold-search nil))
                         (and (re-search-forward regexp nil t)
                              (match-beginning 0)))))))
    (if (null found)
        (message "The line of %s is not known" name)
      (goto-char found)
      (pulse-momentary-highlight-one-line (point)))))

(provide 'heapline-source)
;;; heapline-source.el ends here
