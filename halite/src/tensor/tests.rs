//! Tensors on the host; those on devices are tested with sessions (`halite/tests`).

use super::*;

#[test]
fn elements_go_in_and_come_out() {
    let t = Tensor::from_slice(&[1.0f32, -2.5, 3.0, 4.0, 5.0, 6.0], [2, 3]).unwrap();
    assert_eq!((t.shape(), t.len(), t.byte_len(), t.element_type()), (&[2, 3][..], 6, 24, ElementType::F32));
    assert_eq!(t.to_vec::<f32>().unwrap()[1], -2.5);
    assert_eq!(t.as_slice::<f32>().unwrap()[5], 6.0);
    assert_eq!(t.as_slice::<i32>(), None);
    let error = t.to_vec::<f64>().unwrap_err();
    assert_eq!(
        (error.kind(), error.message()),
        (ErrorKind::InvalidInput, "the tensor has elements of type f32, not f64")
    );
    assert_eq!(Tensor::scalar(7i64).item::<i64>().unwrap(), 7);
    let flags = Tensor::from_slice(&[true, false, true], 3).unwrap();
    assert_eq!(flags.to_vec::<bool>().unwrap(), [true, false, true]);
    let halves = Tensor::from_vec(vec![half::f16::from_f32(0.5)], [1]).unwrap();
    assert_eq!(halves.to_vec::<half::f16>().unwrap()[0].to_f32(), 0.5);
}

#[test]
fn vectors_are_not_copied() {
    let elements = vec![1u32, 2, 3];
    let address = elements.as_ptr();
    let t = Tensor::from_vec(elements, 3).unwrap();
    assert_eq!(t.as_slice::<u32>().unwrap().as_ptr(), address);
    assert_eq!(t.clone().to_host().unwrap().as_slice::<u32>().unwrap().as_ptr(), address);
}

#[test]
fn sizes_that_do_not_fit_are_errors() {
    assert!(Tensor::from_slice(&[1.0f32; 5], [2, 3]).is_err());
    assert!(Tensor::from_bytes(ElementType::F32, [2], vec![0u8; 7]).is_err());
    let huge = Tensor::zeros(ElementType::F32, [usize::MAX, 3]).unwrap_err();
    assert_eq!(huge.kind(), ErrorKind::InvalidInput);
    let t = Tensor::from_slice(&[1i8, 2, 3, 4], [4]).unwrap();
    assert_eq!(t.reshape([2, 2]).unwrap().shape(), [2, 2]);
    assert!(t.reshape([3]).is_err() && t.reshape([usize::MAX, usize::MAX]).is_err());
    assert!(t.item::<i8>().is_err());
}

#[test]
fn integers_without_a_sign_are_read_as_both() {
    let signless = Tensor::from_bytes(ElementType::I8, [2], vec![255u8, 1]).unwrap();
    assert_eq!(signless.to_vec::<i8>().unwrap(), [-1, 1]);
    assert_eq!(signless.to_vec::<u8>().unwrap(), [255, 1]);
    let unsigned = Tensor::from_slice(&[255u8], 1).unwrap();
    assert!(unsigned.to_vec::<i8>().is_err());
}

#[test]
fn tensors_of_text_and_files_are_tensors() {
    let host = HostTensor::new(ElementType::I32, [2u64].as_slice(), vec![1, 0, 0, 0, 2, 0, 0, 0]).unwrap();
    let t = Tensor::from(host.clone());
    assert_eq!(t.to_vec::<i32>().unwrap(), [1, 2]);
    assert_eq!(HostTensor::try_from(&t).unwrap(), host);
}

#[cfg(feature = "ndarray")]
#[test]
fn arrays_go_both_ways_whatever_their_order() {
    let array = ndarray::array![[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]];
    let t = Tensor::from_array(&array.t()).unwrap();
    assert_eq!((t.shape(), t.to_vec::<f32>().unwrap()), (&[3, 2][..], vec![1.0, 4.0, 2.0, 5.0, 3.0, 6.0]));
    assert_eq!(t.to_array::<f32>().unwrap(), array.t().into_dyn());
}
