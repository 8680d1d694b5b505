//! The integration tests in one binary, because each binary takes seconds to link.

mod damage;
mod input;
mod large;
mod round_trip;
mod second_opinion;
