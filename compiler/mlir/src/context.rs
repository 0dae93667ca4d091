//! An MLIR context that knows functions and no other dialect, and collects what MLIR says.

use melior::Context;
use melior::dialect::DialectHandle;
use std::cell::RefCell;
use std::rc::Rc;

/// MLIR's messages of one context, each with its place in the module.
#[derive(Clone, Default)]
pub struct Messages(Rc<RefCell<Vec<String>>>);

impl Messages {
    /// The messages so far, which are forgotten.
    pub fn take(&self) -> Vec<String> {
        self.0.take()
    }
}

/// A context for one module, since MLIR never frees the attributes that it has seen.
pub fn context() -> (Context, Messages) {
    let context = Context::new_with_threading(false);
    context.set_allow_unregistered_dialects(true);
    DialectHandle::func().load_dialect(&context);
    let messages = Messages::default();
    let sink = messages.0.clone();
    context.attach_diagnostic_handler(move |diagnostic| {
        sink.borrow_mut().push(format!("{}: {diagnostic}", diagnostic.location()));
        for note in (0..diagnostic.note_count()).filter_map(|i| diagnostic.note(i).ok()) {
            sink.borrow_mut().push(format!("{}: note: {note}", note.location()));
        }
        true
    });
    (context, messages)
}
