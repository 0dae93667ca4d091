//! An op is its mnemonic and its attributes: both give it back.

use super::{cases, check_all};
use podracer_compiler::ops::registry;

#[test]
fn attributes_give_the_op_back() {
    check_all(cases(), |case| {
        let op = &case.sample.op;
        if op.mnemonic() != case.mnemonic {
            return Err(format!(
                "the registry calls it {}, the op {}",
                case.mnemonic,
                op.mnemonic()
            ));
        }
        let entry = registry::find(op.mnemonic()).ok_or("not in the registry")?;
        let parsed = (entry.parse)(&op.attributes())?;
        if parsed == *op { Ok(()) } else { Err(format!("parsed back as {parsed:?}")) }
    });
}

#[test]
fn a_missing_attribute_is_named() {
    check_all(cases(), |case| {
        let entry = registry::find(case.mnemonic).ok_or("not in the registry")?;
        let attributes = case.sample.op.attributes();
        for (name, _) in &attributes.0 {
            let mut fewer = attributes.clone();
            fewer.0.retain(|(key, _)| key != name);
            match (entry.parse)(&fewer) {
                Err(message) if message.contains(name) => {}
                Err(message) => {
                    return Err(format!("without `{name}` the error does not name it: {message}"));
                }
                Ok(_) => return Err(format!("parses without its attribute `{name}`")),
            }
        }
        Ok(())
    });
}
