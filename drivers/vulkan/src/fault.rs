//! Asking a lost device what went wrong (`VK_EXT_device_fault`), and its answer in words.

use std::ffi::c_char;

use ash::vk;

use crate::context::DeviceContext;

/// Addresses and vendor codes that are told: a driver may know thousands.
const MOST: u32 = 16;

/// (key, value) of what the driver knows; empty where it cannot say. The first entry is its description.
pub(crate) fn describe(ctx: &DeviceContext) -> Vec<(String, String)> {
    let Some(functions) = &ctx.device_fault else { return Vec::new() };
    let mut counts = vk::DeviceFaultCountsEXT::default();
    let query = functions.fp().get_device_fault_info_ext;
    // SAFETY: the device is alive and was opened with deviceFault; without a second structure only counts are written.
    let result = unsafe { query(functions.device(), &mut counts, std::ptr::null_mut()) };
    if result != vk::Result::SUCCESS {
        log::debug!("vkGetDeviceFaultInfoEXT failed with {result:?}");
        return Vec::new();
    }
    counts.address_info_count = counts.address_info_count.min(MOST);
    counts.vendor_info_count = counts.vendor_info_count.min(MOST);
    counts.vendor_binary_size = 0;
    let mut addresses = vec![vk::DeviceFaultAddressInfoEXT::default(); counts.address_info_count as usize];
    let mut vendors = vec![vk::DeviceFaultVendorInfoEXT::default(); counts.vendor_info_count as usize];
    let mut info = vk::DeviceFaultInfoEXT {
        p_address_infos: addresses.as_mut_ptr(),
        p_vendor_infos: vendors.as_mut_ptr(),
        ..Default::default()
    };
    // SAFETY: as above; the arrays have as many elements as the counts say, and no binary is asked for.
    let result = unsafe { query(functions.device(), &mut counts, &mut info) };
    if !matches!(result, vk::Result::SUCCESS | vk::Result::INCOMPLETE) {
        log::debug!("vkGetDeviceFaultInfoEXT failed with {result:?}");
        return Vec::new();
    }
    addresses.truncate(counts.address_info_count as usize);
    vendors.truncate(counts.vendor_info_count as usize);
    in_words(&info, &addresses, &vendors)
}

fn in_words(
    info: &vk::DeviceFaultInfoEXT<'_>,
    addresses: &[vk::DeviceFaultAddressInfoEXT],
    vendors: &[vk::DeviceFaultVendorInfoEXT],
) -> Vec<(String, String)> {
    let mut all = vec![("vk.fault.description".to_owned(), text(&info.description))];
    for (index, a) in addresses.iter().enumerate() {
        // The precision is a power of two: the address is somewhere in that many bytes (specification of the extension).
        let precision = a.address_precision.max(1);
        let first = a.reported_address & !(precision - 1);
        let value = format!(
            "{} at {first:#x}..={:#x}",
            address_kind(a.address_type),
            first.saturating_add(precision - 1)
        );
        all.push((format!("vk.fault.address.{index}"), value));
    }
    for (index, v) in vendors.iter().enumerate() {
        let value = format!(
            "{} (code {:#x}, data {:#x})",
            text(&v.description),
            v.vendor_fault_code,
            v.vendor_fault_data
        );
        all.push((format!("vk.fault.vendor.{index}"), value));
    }
    all
}

/// The characters up to the first zero, or all where a driver forgot it.
fn text(chars: &[c_char]) -> String {
    let bytes: Vec<u8> = chars.iter().take_while(|c| **c != 0).map(|c| c.to_ne_bytes()[0]).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn address_kind(kind: vk::DeviceFaultAddressTypeEXT) -> &'static str {
    match kind {
        vk::DeviceFaultAddressTypeEXT::READ_INVALID => "invalid read",
        vk::DeviceFaultAddressTypeEXT::WRITE_INVALID => "invalid write",
        vk::DeviceFaultAddressTypeEXT::EXECUTE_INVALID => "invalid execution",
        vk::DeviceFaultAddressTypeEXT::INSTRUCTION_POINTER_UNKNOWN => "instruction pointer",
        vk::DeviceFaultAddressTypeEXT::INSTRUCTION_POINTER_INVALID => "invalid instruction pointer",
        vk::DeviceFaultAddressTypeEXT::INSTRUCTION_POINTER_FAULT => "faulting instruction pointer",
        _ => "address",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_told_as_ranges() {
        let address = vk::DeviceFaultAddressInfoEXT {
            address_type: vk::DeviceFaultAddressTypeEXT::WRITE_INVALID,
            reported_address: 0x1234_5678,
            address_precision: 0x1000,
        };
        let told = in_words(&vk::DeviceFaultInfoEXT::default(), &[address], &[]);
        assert_eq!(told[1].0, "vk.fault.address.0");
        assert_eq!(told[1].1, "invalid write at 0x12345000..=0x12345fff");
    }
}
