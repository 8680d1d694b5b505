//! Checks a dataset.
