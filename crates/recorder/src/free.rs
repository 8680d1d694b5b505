//! Frees recorders, where somebody knows that they are not used any more.

use std::sync::atomic::Ordering;

use heapline_trace::tail::layout::{PAGE, SLOT};

use crate::map::unmap;
use crate::recorder::Recorder;

impl Recorder {
    /// Frees a recorder that has [stopped](Self::stop): its memory, mappings and descriptor.
    ///
    /// It takes a pointer because the compiler assumes that a reference is valid until its function returns.
    ///
    /// # Safety
    ///
    /// It was [started](Self::start). No thread is in it or in one of its lanes, or has a reference to them
    /// that it is going to use.
    pub unsafe fn free(recorder: *const Self) {
        // SAFETY: it was made from a box, and nobody else uses it.
        let recorder = unsafe { Box::from_raw(recorder.cast_mut()) };
        for lane in recorder
            .lanes
            .iter()
            .map(|lane| lane.load(Ordering::Acquire))
        {
            if !lane.is_null() {
                // SAFETY: lanes are made from boxes, and nobody else uses this one.
                let lane = unsafe { Box::from_raw(lane) };
                // SAFETY: as above.
                let mapping = unsafe { lane.mapping() };
                drop(lane);
                // SAFETY: it is the whole mapping, which only the lane used.
                unsafe { unmap(mapping, SLOT) };
            }
        }
        // SAFETY: it was made from a box, and only the lanes and the recorder used it.
        unsafe { Box::from_raw(std::ptr::from_ref(recorder.file).cast_mut()) }.close();
        let status = recorder.status().address();
        drop(recorder);
        // SAFETY: it is the whole mapping, which only the recorder used.
        unsafe { unmap(status, PAGE) };
    }
}
