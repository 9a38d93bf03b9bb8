//! psitrace: pressure stall information from outside of the kernel.
//!
//! Data flows one way: the BPF programs' maps -> flush -> [`model`] -> what a command shows. [`tracer::Tracer`]
//! is the way in.

pub mod averages;
pub mod control;
mod drift;
mod enable;
pub mod error;
pub mod fields;
mod figures;
pub mod flush;
pub mod hierarchy;
pub mod info;
pub mod kernel;
pub mod load;
mod mapped;
pub mod model;
pub mod pressure_file;
pub mod privilege;
pub mod programs;
pub mod record;
pub mod rstat;
mod slots;
pub mod synthetic;
pub mod tracer;
pub mod track;
mod wakeups;
pub mod when;
