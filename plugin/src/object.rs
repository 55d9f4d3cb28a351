//! What all objects of the interface have in common: handles of ours for the far end, and handles of the far end for
//! us, with their counts and checked tables.

use std::{
    fmt,
    ptr::NonNull,
    sync::{Arc, atomic::AtomicBool},
};

use super::{
    panics,
    peer::{Peer, Side},
};
use halite_hal::{Code, Result, Status};

/// A table of functions.
///
/// # Safety
/// The type is `repr(C)` and begins with `struct_size: u32`; `Object` is `repr(C)` and consists of a pointer to the table.
pub(super) unsafe trait Table: Sized + Sync + 'static {
    /// Its C name.
    const NAME: &'static str;
    /// The structure that a handle points to.
    type Object;
    /// The first function that is null, if any.
    fn missing(&self) -> Option<&'static str>;
}

/// A table of counted objects.
pub(super) trait Counted: Table {
    /// The function that adds a count.
    fn retain(&self) -> Option<unsafe extern "C" fn(object: *mut Self::Object)>;
    /// The function that takes a count away.
    fn release(&self) -> Option<unsafe extern "C" fn(object: *mut Self::Object)>;
}

/// Declares a table: its object, and its functions, all of which must be there.
macro_rules! table {
    (counted $table:ident of $object:ident: $($function:ident),+) => {
        $crate::object::table!($table of $object: retain, release, $($function),+);
        impl $crate::object::Counted for $table {
            fn retain(&self) -> Option<unsafe extern "C" fn(*mut $object)> {
                self.retain
            }
            fn release(&self) -> Option<unsafe extern "C" fn(*mut $object)> {
                self.release
            }
        }
    };
    ($table:ident of $object:ident: $($function:ident),+) => {
        // SAFETY: both are `repr(C)`; the table begins with `struct_size`, the object with the pointer to its table.
        unsafe impl $crate::object::Table for $table {
            const NAME: &'static str = stringify!($table);
            type Object = $object;
            fn missing(&self) -> Option<&'static str> {
                $(if self.$function.is_none() { return Some(stringify!($function)); })+
                None
            }
        }
    };
}
pub(super) use table;

/// A Rust type that has handles: a trait object, mostly.
pub(super) trait Shared: 'static {
    /// What messages call it.
    const NOUN: &'static str;
    /// Its table.
    type Table: Table;
    /// This library's one table for it. Its address tells our own handles from others.
    fn table() -> &'static Self::Table;
}

/// What a handle of a [`Shared`] type points to.
pub(super) type ObjectOf<T> = <<T as Shared>::Table as Table>::Object;

/// An object of ours, as the far end holds it: the table's address comes first, as the interface wants.
#[repr(C)]
pub(super) struct Exported<T: Shared + ?Sized> {
    vtable: &'static T::Table,
    /// Whose object it is.
    pub side: Side,
    /// Whether a call panicked.
    pub poisoned: AtomicBool,
    /// The object.
    pub inner: Arc<T>,
}

impl<T: Shared + ?Sized> Exported<T> {
    /// An object for the far end. Its handle is [`Exported::handle`].
    pub(super) fn new(side: Side, inner: Arc<T>) -> Arc<Self> {
        Arc::new(Exported { vtable: T::table(), side, poisoned: AtomicBool::new(false), inner })
    }

    /// The handle, lent as long as `this` lives.
    pub(super) fn handle(this: &Arc<Self>) -> *mut ObjectOf<T> {
        Arc::as_ptr(this).cast_mut().cast()
    }

    /// The handle, with a count that the far end owns.
    pub(super) fn give(this: Arc<Self>) -> *mut ObjectOf<T> {
        Arc::into_raw(this).cast_mut().cast()
    }

    /// The object behind a handle.
    ///
    /// # Safety
    /// `object` is null or a live handle made by [`Exported::handle`] or [`Exported::give`] for this very `T`.
    pub(super) unsafe fn borrow<'a>(object: *mut ObjectOf<T>) -> Option<&'a Self> {
        // SAFETY: the caller's promise; handles are shared, so nobody has a unique reference.
        unsafe { object.cast::<Self>().as_ref() }
    }

    /// The far end of calls of this object.
    pub(super) fn peer(&self) -> Peer {
        Peer::of(self.side)
    }
}

/// `retain` of all our tables.
pub(super) unsafe extern "C" fn retain<T: Shared + ?Sized>(object: *mut ObjectOf<T>) {
    if !object.is_null() {
        // SAFETY: the caller holds a live handle, which is an `Arc<Exported<T>>` turned into a pointer.
        unsafe { Arc::increment_strong_count(object.cast::<Exported<T>>().cast_const()) };
    }
}

/// `release` of all our tables.
pub(super) unsafe extern "C" fn release<T: Shared + ?Sized>(object: *mut ObjectOf<T>) {
    if !object.is_null() {
        panics::swallow("release", || {
            // SAFETY: the caller owns a count of a live handle and gives it up.
            drop(unsafe { Arc::from_raw(object.cast::<Exported<T>>().cast_const()) });
        });
    }
}

/// A count of an object of the far end, and its checked table.
pub(super) struct Handle<V: Counted> {
    object: NonNull<V::Object>,
    table: &'static V,
    /// Who made it.
    pub peer: Peer,
}

// SAFETY: the interface lets any thread call any function of an object, at the same time as others.
unsafe impl<V: Counted> Send for Handle<V> {}
// SAFETY: as above.
unsafe impl<V: Counted> Sync for Handle<V> {}

impl<V: Counted> Handle<V> {
    /// The object, lent as long as the handle lives.
    pub(super) fn raw(&self) -> *mut V::Object {
        self.object.as_ptr()
    }

    /// Its functions.
    pub(super) fn table(&self) -> &'static V {
        self.table
    }
}

impl<V: Counted> Drop for Handle<V> {
    fn drop(&mut self) {
        if let Some(release) = self.table.release() {
            // SAFETY: the handle owns one count, which ends here.
            unsafe { release(self.raw()) };
        }
    }
}

impl<V: Counted> fmt::Debug for Handle<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:p} of {}", self.object, self.peer)
    }
}

/// A function of a table that [`check_table`] has passed.
#[track_caller]
pub(super) fn present<F>(function: Option<F>) -> F {
    function.expect("tables are checked for null functions when their object comes in, and never change")
}

/// Checks the table of an object: its size and its functions. INCOMPATIBLE names what is missing.
///
/// # Safety
/// `object` is null or points to an object of the far end, whose table lives for ever.
pub(super) unsafe fn check_table<V: Table>(
    object: *mut V::Object,
    peer: Peer,
) -> Result<(NonNull<V::Object>, &'static V)> {
    let broken = |what: fmt::Arguments<'_>| {
        Status::new(
            Code::Incompatible,
            format!(
                "{peer} does not fit this version of the plug-in interface: {what}; rebuild it for this one"
            ),
        )
    };
    let Some(live) = NonNull::new(object) else {
        return Err(peer.broke(format_args!("a handle with a {} is null", V::NAME)));
    };
    if !object.cast::<*const V>().is_aligned() {
        return Err(peer.broke(format_args!("a handle with a {} is misaligned", V::NAME)));
    }
    // SAFETY: the first field of an object is the pointer to its table.
    let table = unsafe { object.cast::<*const V>().read() };
    if table.is_null() || !table.is_aligned() {
        return Err(broken(format_args!("{} is null or misaligned", V::NAME)));
    }
    // SAFETY: the first field of a table is its size.
    let size = unsafe { table.cast::<u32>().read() };
    if (size as usize) < size_of::<V>() {
        return Err(broken(format_args!("{} has {size} bytes instead of {}", V::NAME, size_of::<V>())));
    }
    // SAFETY: the table has all fields of this version and lives for ever.
    let table = unsafe { &*table };
    match table.missing() {
        Some(function) => Err(broken(format_args!("{}.{function} is null", V::NAME))),
        None => Ok((live, table)),
    }
}

/// Whether a handle that comes in brings a count.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Count {
    /// An argument: lent for the call.
    Borrowed,
    /// A result: ours.
    Given,
}

/// A handle that came in.
pub(super) enum Arrival<T: Shared + ?Sized>
where
    T::Table: Counted,
{
    /// One of our own objects came back.
    Own(Arc<T>),
    /// An object of somebody else.
    Foreign(Handle<T::Table>),
}

/// The object of ours behind a handle, if it is one.
///
/// # Safety
/// `object` is null or a live handle.
#[inline]
pub(super) unsafe fn own<'a, T: Shared + ?Sized>(
    side: Side,
    object: *mut ObjectOf<T>,
) -> Option<&'a Exported<T>> {
    if object.is_null() || !object.cast::<*const T::Table>().is_aligned() {
        return None;
    }
    // SAFETY: the first field of an object is the pointer to its table.
    let table = unsafe { object.cast::<*const T::Table>().read() };
    if !std::ptr::eq(table, T::table()) {
        return None;
    }
    // SAFETY: only `Exported<T>` of this library points to this library's table.
    unsafe { Exported::<T>::borrow(object) }.filter(|exported| exported.side == side)
}

/// Takes a handle in.
///
/// # Safety
/// `object` is null or a live handle; with [`Count::Given`] one of its counts is ours.
pub(super) unsafe fn receive<T: Shared + ?Sized>(
    object: *mut ObjectOf<T>,
    count: Count,
    peer: Peer,
) -> Result<Arrival<T>>
where
    T::Table: Counted,
{
    // SAFETY: the caller's promise.
    if let Some(exported) = unsafe { own::<T>(peer.side, object) } {
        let inner = exported.inner.clone();
        if count == Count::Given {
            // SAFETY: the count is ours, and `exported` is not used after it.
            unsafe { release::<T>(object) };
        }
        return Ok(Arrival::Own(inner));
    }
    // SAFETY: the caller's promise.
    let (object, table) = unsafe { check_table::<T::Table>(object, peer)? };
    if count == Count::Borrowed {
        // SAFETY: the object is live for the call, and the table was checked.
        unsafe { present(table.retain())(object.as_ptr()) };
    }
    Ok(Arrival::Foreign(Handle { object, table, peer }))
}
