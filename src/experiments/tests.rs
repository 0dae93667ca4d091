//! What settings become.

use crate::experiments::build;
use crate::settings::{Overrides, UsageError, load};

#[test]
fn environments_on_the_host_need_sebulba() {
    for name in ["pixel-breakout", "pixel-catch"] {
        let built = |sets: &[String]| {
            let overrides = Overrides {
                set: sets.to_vec(),
                ..Overrides::default()
            };
            build(&load("catch-ppo", &overrides).unwrap())
        };
        let environment = format!("environment.name={name}");
        let error = built(std::slice::from_ref(&environment)).err().unwrap();
        assert!(error.downcast_ref::<UsageError>().is_some(), "{error:#}");
        assert!(
            error
                .to_string()
                .contains("give the experiment a [sebulba]"),
            "{error}"
        );
        built(&[environment, "sebulba.environments=2".to_owned()]).unwrap();
    }
}
