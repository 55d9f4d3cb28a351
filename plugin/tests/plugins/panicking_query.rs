//! A driver library that panics while it is asked who it is. Loaded by `tests/bad_plugins.rs`.

halite_plugin::export_driver!(|| panic!("this driver cannot even be made"));
