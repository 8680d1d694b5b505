;;; heapline-figures.el --- Figures as heapline prints them  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Formats the estimates of heapline's JSON exactly as its text reports do:
;; `12.34 ± 0.41 MiB'.  A figure that the trace does not tell is nil in the
;; JSON, and shown as `?'.

;;; Code:

(defconst heapline-figures--units '("B" "KiB" "MiB" "GiB" "TiB" "PiB" "EiB")
  "Units of memory, each 1024 times the previous one.")

(defconst heapline-figures--untold "?"
  "Text for a figure that the trace does not tell.")

(defun heapline-figures--scale (amount)
  "Return (FACTOR . UNIT) to show AMOUNT bytes with."
  (let ((factor 1.0)
        (units heapline-figures--units))
    ;; 1023.95 would be shown as 1024.
    (while (and (cdr units) (>= (/ (abs amount) factor) 1023.5))
      (setq factor (* factor 1024.0)
            units (cdr units)))
    (cons factor (car units))))

(defun heapline-figures--significant (n)
  "Format N with three significant digits; whole numbers without a fraction."
  (let ((size (abs n)))
    (format (cond ((or (= n (ftruncate n)) (>= size 99.95)) "%.0f")
                  ((>= size 9.995) "%.1f")
                  (t "%.2f"))
            n)))

(defun heapline-figures--with-error (n err)
  "Format N and its error ERR with the digits that are significant given ERR."
  (if (= err 0)
      (heapline-figures--significant n)
    (let ((digits (cond ((>= err 10) "%.0f")
                        ((>= err 1) "%.1f")
                        ((>= err 0.1) "%.2f")
                        (t "%.3f"))))
      (concat (format digits n) " ± " (format digits err)))))

(defun heapline-figures-bytes (amount)
  "Format AMOUNT bytes, such as `12.3 MiB'."
  (if (null amount)
      heapline-figures--untold
    (let ((scale (heapline-figures--scale amount)))
      (concat (heapline-figures--significant (/ amount (car scale)))
              " " (cdr scale)))))

(defun heapline-figures-estimate (estimate)
  "Format ESTIMATE, a plist of bytes, such as `12.34 ± 0.41 MiB'.
If nothing was sampled, the result is the upper bound, such as `< 23.4 KiB'."
  (let ((value (plist-get estimate :value))
        (err (or (plist-get estimate :error) 0.0)))
    (cond ((null value) heapline-figures--untold)
          ((and (= value 0) (> err 0))
           (concat "< " (heapline-figures-bytes err)))
          (t
           ;; The larger one decides, so that both are short.
           (let* ((scale (heapline-figures--scale (max value err)))
                  (factor (car scale)))
             (concat (heapline-figures--with-error (/ value factor)
                                                   (/ err factor))
                     " " (cdr scale)))))))

(defun heapline-figures-count (estimate)
  "Format ESTIMATE, a plist of a number of things, such as `12,300 ± 400'."
  (let ((value (plist-get estimate :value))
        (err (or (plist-get estimate :error) 0.0)))
    (cond ((null value) heapline-figures--untold)
          ((= err 0) (heapline-figures--group value))
          (t (concat (heapline-figures--group value) " ± "
                     (heapline-figures--group err))))))

(defun heapline-figures--group (n)
  "Format N as a whole number with its digits in groups, such as `7,353,975'."
  (let ((text (format "%.0f" n)))
    (while (string-match "\\([0-9]\\)\\([0-9]\\{3\\}\\)\\(,\\|\\'\\)" text)
      (setq text (replace-match "\\1,\\2\\3" nil nil text)))
    text))

(defun heapline-figures-percent (part whole)
  "Format the share of PART in WHOLE in percent, without a sign."
  (if (or (null part) (null whole) (<= whole 0))
      "-"
    (let ((share (/ (* 100.0 part) whole)))
      (if (< 0 share 0.05) "< 0.1" (format "%.1f" share)))))

(defun heapline-figures-sanitize (text)
  "Replace the characters of TEXT that could forge lines or reorder text."
  (replace-regexp-in-string
   "[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
   "\N{REPLACEMENT CHARACTER}" text))

(provide 'heapline-figures)
;;; heapline-figures.el ends here
