#![doc = include_str!("../README.md")]

mod app;
mod choices;
mod collector;
mod draw;
mod edit;
mod filter;
mod header;
mod help;
mod keys;
mod menu;
mod moment;
mod overlay;
mod select;
mod situation;
mod source;
mod table;
mod terminal;
mod theme;
mod timeline;
mod tree;
mod worker;

pub use app::{Action, App, Settings};
pub use choices::{Choices, Column, Slot, Unit, View, Want};
pub use moment::Moment;
pub use situation::Situation;
pub use source::{Newest, Progress, Source};
pub use terminal::{Left, TerminalOptions, run};
pub use theme::Theme;
pub use worker::{News, Worker, WorkerOptions};
