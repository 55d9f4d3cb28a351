//! What is the same whichever Vulkan driver there is, one program of tests: each program links the whole engine.

mod faulty_devices;
mod hal_plugins;
mod local;
mod run;
mod sample_c;
mod soak;
