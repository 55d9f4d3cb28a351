//! Native methods of `org.halite.Devices`, and the version.

use halite::{DeviceKind, Drivers};
use jni::{
    EnvUnowned,
    objects::{JClass, JObjectArray, JString},
};

use crate::{convert, failure::enter};

/// The library's version.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_version<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
) -> JString<'local> {
    enter(env, |env| Ok(env.new_string(env!("CARGO_PKG_VERSION"))?))
}

/// All devices, five texts for each: URI, name, kind, target, and why it cannot be used. The last two may be empty.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_devices<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
) -> JObjectArray<'local, JString<'local>> {
    enter(env, |env| {
        let mut texts = Vec::new();
        for device in Drivers::linked().devices() {
            texts.extend([
                device.uri(),
                device.name().to_owned(),
                kind_name(device.kind()).to_owned(),
                device.target().unwrap_or_default().to_owned(),
                device.unusable().unwrap_or_default().to_owned(),
            ]);
        }
        convert::array_of(env, &texts)
    })
}

/// The name of a kind in Java's enumeration `Device.Kind`.
fn kind_name(kind: DeviceKind) -> &'static str {
    match kind {
        DeviceKind::DiscreteGpu => "DISCRETE_GPU",
        DeviceKind::IntegratedGpu => "INTEGRATED_GPU",
        DeviceKind::VirtualGpu => "VIRTUAL_GPU",
        DeviceKind::Cpu => "CPU",
        _ => "OTHER",
    }
}
