//! What the validation layer says: messages go to the log and are counted.

use std::{
    borrow::Cow,
    ffi::{CStr, c_char, c_void},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicU64, Ordering},
};

use ash::vk;

/// Id under which GPU-assisted validation says which of its own checks it leaves out on a device, such as address
/// checks where there are no 64-bit integers. It is about the layer, not about our use of Vulkan.
const NOTICE: &str = "UNASSIGNED-GPU-Assisted Validation Warning";

static COUNT: AtomicU64 = AtomicU64::new(0);

/// Number of errors and warnings that the validation layer has reported in this process, over all devices.
/// Never decreases; tests compare it before and after.
pub fn validation_message_count() -> u64 {
    COUNT.load(Ordering::Relaxed)
}

/// A registered receiver of messages. Must be destroyed before its instance.
pub(super) struct Messenger {
    functions: ash::ext::debug_utils::Instance,
    handle: vk::DebugUtilsMessengerEXT,
}

impl Messenger {
    /// Registers the receiver.
    ///
    /// # Safety
    /// The instance must be alive, come from `entry`, and have `VK_EXT_debug_utils` enabled.
    pub(super) unsafe fn create(entry: &ash::Entry, instance: &ash::Instance) -> Result<Self, vk::Result> {
        let functions = ash::ext::debug_utils::Instance::new(entry, instance);
        // SAFETY: the caller vouches for the instance; the callback is a plain function without captured
        // data.
        let handle = unsafe { functions.create_debug_utils_messenger(&create_info(), None)? };
        Ok(Messenger { functions, handle })
    }

    /// Unregisters the receiver.
    ///
    /// # Safety
    /// The instance must still be alive.
    pub(super) unsafe fn destroy(self) {
        // SAFETY: the handle is owned by self, and the caller vouches for the instance.
        unsafe { self.functions.destroy_debug_utils_messenger(self.handle, None) };
    }
}

pub(super) fn create_info() -> vk::DebugUtilsMessengerCreateInfoEXT<'static> {
    vk::DebugUtilsMessengerCreateInfoEXT::default()
        .message_severity(
            vk::DebugUtilsMessageSeverityFlagsEXT::ERROR
                | vk::DebugUtilsMessageSeverityFlagsEXT::WARNING
                | vk::DebugUtilsMessageSeverityFlagsEXT::INFO,
        )
        .message_type(
            vk::DebugUtilsMessageTypeFlagsEXT::GENERAL
                | vk::DebugUtilsMessageTypeFlagsEXT::VALIDATION
                | vk::DebugUtilsMessageTypeFlagsEXT::PERFORMANCE,
        )
        .pfn_user_callback(Some(on_message))
}

unsafe extern "system" fn on_message(
    severity: vk::DebugUtilsMessageSeverityFlagsEXT,
    kind: vk::DebugUtilsMessageTypeFlagsEXT,
    data: *const vk::DebugUtilsMessengerCallbackDataEXT<'_>,
    _user: *mut c_void,
) -> vk::Bool32 {
    // A logger that panics must not unwind into the driver; the message is lost, the count is not.
    // SAFETY: the layer passes null or a structure whose strings are valid during the call.
    let notice = unsafe { data.as_ref().is_some_and(|d| text(d.p_message_id_name) == NOTICE) };
    let level = if notice { log::Level::Info } else { level_of(severity) };
    let validation = kind.contains(vk::DebugUtilsMessageTypeFlagsEXT::VALIDATION);
    if validation && level <= log::Level::Warn {
        COUNT.fetch_add(1, Ordering::Relaxed);
    }
    // Programs count by target: messages of a driver that is a plug-in reach them through the log only.
    let target = if validation { "vulkan.validation" } else { "vulkan.validation.other" };
    let logged = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the layer passes null or a structure that is valid during the call.
        if let Some(data) = unsafe { data.as_ref() } {
            // SAFETY: the strings and objects of the structure are valid during the call.
            log::log!(target: target, level, "{}", unsafe { describe(data) });
        }
    }));
    drop(logged);
    vk::FALSE
}

fn level_of(severity: vk::DebugUtilsMessageSeverityFlagsEXT) -> log::Level {
    if severity.contains(vk::DebugUtilsMessageSeverityFlagsEXT::ERROR) {
        log::Level::Error
    } else if severity.contains(vk::DebugUtilsMessageSeverityFlagsEXT::WARNING) {
        log::Level::Warn
    } else if severity.contains(vk::DebugUtilsMessageSeverityFlagsEXT::INFO) {
        log::Level::Info
    } else {
        log::Level::Debug
    }
}

/// The message's id, text and the objects it is about.
///
/// # Safety
/// The structure's pointers must be null or valid.
unsafe fn describe(data: &vk::DebugUtilsMessengerCallbackDataEXT<'_>) -> String {
    // SAFETY: as the caller vouches.
    let (id, message) = unsafe { (text(data.p_message_id_name), text(data.p_message)) };
    let id = if id.is_empty() { Cow::from(format!("id {:#x}", data.message_id_number)) } else { id };
    let mut line = format!("[{id}] {message}");
    let count = if data.p_objects.is_null() { 0 } else { data.object_count as usize };
    for index in 0..count {
        // SAFETY: the caller vouches for the array of object_count entries.
        let object = unsafe { &*data.p_objects.add(index) };
        // SAFETY: as the caller vouches.
        let name = unsafe { text(object.p_object_name) };
        let separator = if index == 0 { "; objects:" } else { "," };
        line.push_str(&format!("{separator} {:?} {:#x}", object.object_type, object.object_handle));
        if !name.is_empty() {
            line.push_str(&format!(" '{name}'"));
        }
    }
    line
}

/// # Safety
/// The pointer must be null or a C string that outlives the result.
unsafe fn text<'a>(pointer: *const c_char) -> Cow<'a, str> {
    if pointer.is_null() {
        return Cow::Borrowed("");
    }
    // SAFETY: as the caller vouches.
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy()
}

/// Held by tests that count messages, or that make the layer speak.
#[cfg(test)]
pub(crate) static COUNTING: parking_lot::Mutex<()> = parking_lot::Mutex::new(());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_layer_says_of_itself_does_not_count() {
        let _counting = COUNTING.lock();
        let before = validation_message_count();
        let id = std::ffi::CString::new(NOTICE).unwrap();
        let data =
            vk::DebugUtilsMessengerCallbackDataEXT::default().message_id_name(&id).message(c"no int64");
        let warning = vk::DebugUtilsMessageSeverityFlagsEXT::WARNING;
        // SAFETY: the structure was built above from live data.
        unsafe {
            on_message(warning, vk::DebugUtilsMessageTypeFlagsEXT::VALIDATION, &data, std::ptr::null_mut())
        };
        assert_eq!(validation_message_count(), before);
    }

    fn deliver(
        severity: vk::DebugUtilsMessageSeverityFlagsEXT,
        kind: vk::DebugUtilsMessageTypeFlagsEXT,
    ) -> u64 {
        let before = validation_message_count();
        let objects = [vk::DebugUtilsObjectNameInfoEXT::default().object_name(c"weights")];
        let data = vk::DebugUtilsMessengerCallbackDataEXT::default()
            .message_id_name(c"VUID-x")
            .message(c"bad")
            .objects(&objects);
        // SAFETY: the structure was built above from live data.
        let text = unsafe { describe(&data) };
        assert!(text.starts_with("[VUID-x] bad; objects: ") && text.ends_with("'weights'"), "{text}");
        // SAFETY: the structure was built above from live data.
        unsafe { on_message(severity, kind, &data, std::ptr::null_mut()) };
        validation_message_count() - before
    }

    #[test]
    fn errors_and_warnings_of_validation_count() {
        use vk::{DebugUtilsMessageSeverityFlagsEXT as S, DebugUtilsMessageTypeFlagsEXT as T};
        let _alone = COUNTING.lock();
        assert_eq!(deliver(S::ERROR, T::VALIDATION), 1);
        assert_eq!(deliver(S::WARNING, T::VALIDATION), 1);
        assert_eq!(deliver(S::INFO, T::VALIDATION), 0);
        assert_eq!(deliver(S::ERROR, T::GENERAL), 0);
        let before = validation_message_count();
        // SAFETY: null data is allowed.
        unsafe { on_message(S::ERROR, T::VALIDATION, std::ptr::null(), std::ptr::null_mut()) };
        assert_eq!(validation_message_count(), before + 1);
    }
}
