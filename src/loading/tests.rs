//! Tests of settings from files and from the command line, and of the messages about wrong
//! settings.

use std::fs;

use podracer_envs::host::server::{Atari, Gymnasium};
use podracer_rl::agents::{OnlineSettings, PpoSettings};

use crate::UsageError;
use crate::loading::{Overrides, load};
use crate::registry::{Registry, parse};
use crate::settings::{Devices, Plan, Settings};

fn set(experiment: &str, sets: &[&str]) -> anyhow::Result<Settings> {
    let set = sets.iter().map(|&one| one.to_owned()).collect();
    load(experiment, &Overrides { set, ..Overrides::default() })
}

/// The message of a usage error, anywhere in the chain.
fn mistake(result: anyhow::Result<Settings>) -> String {
    let error = result.unwrap_err();
    assert!(error.downcast_ref::<UsageError>().is_some(), "{error:#}");
    format!("{error:#}")
}

#[test]
fn every_built_in_experiment_is_complete_and_divides() {
    let registry = Registry::built_in();
    registry.check().unwrap();
    for one in registry.experiments() {
        let settings = registry.load(&one.name, &Overrides::default()).unwrap();
        assert_eq!(settings.experiment, one.name);
        assert!(!settings.description.is_empty());
        settings.check_division(1, &registry).unwrap();
        let devices = match settings.training_loop.host() {
            // Actors and learners need separate devices.
            Some(_) => Devices::All,
            None => Devices::Count(1),
        };
        assert_eq!(settings.train.devices, devices);
    }
}

#[test]
fn steps_that_are_rounded_to_whole_calls_are_reported() {
    let set = |steps| Overrides { steps: Some(steps), ..Overrides::default() };
    let rounding = |experiment, steps| load(experiment, &set(steps)).unwrap().rounding();
    assert_eq!(rounding("cartpole-rainbow", 16_000), None);
    let told = rounding("cartpole-rainbow", 4_000).unwrap();
    let expected = "8000 steps will be trained where train.steps = 4000: a run is whole calls of the compiled program, here 1 call of 250 \
                    iterations, each of 32 steps (anakin.iterations_per_call = 250)";
    assert_eq!(told, expected);
}

#[test]
fn cartpole_is_as_published() {
    let settings = load("cartpole-ppo", &Overrides::default()).unwrap();
    let plan = Plan { steps_per_iteration: 512, iterations: 976, calls: 61 };
    assert_eq!(settings.plan(), plan);
    let ppo: PpoSettings = parse(&settings.agent, "agent").unwrap();
    assert_eq!((ppo.optimizer.learning_rate, ppo.epochs, ppo.minibatches), (2.5e-4.into(), 4, 4));
    assert_eq!(ppo.networks.hidden, [64, 64]);
}

#[test]
fn settings_survive_their_own_text() {
    let sets = ["agent.hidden=[8]", "xla.xla_a=true", "xla.xla_b=b=c", "train.devices=[0,2]"];
    let settings = set("gridworld-ppo", &sets).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.toml");
    let text = format!("{}\n[recorded]\nany = 1\n", settings.to_toml().unwrap());
    fs::write(&path, text).unwrap();
    assert_eq!(set(path.to_str().unwrap(), &[]).unwrap(), settings);
}

#[test]
fn a_file_changes_its_base() {
    let folder = tempfile::tempdir().unwrap();
    let middle = folder.path().join("middle.toml");
    let mine = folder.path().join("mine.toml");
    fs::write(&middle, "base = 'cartpole-ppo'\n[agent]\nclip = 0.1\nlearning_rate = 1\n").unwrap();
    fs::write(&mine, "base = 'middle.toml'\n[anakin]\nenvironments = 8\n").unwrap();
    let settings = set(mine.to_str().unwrap(), &["agent.epochs=2"]).unwrap();
    let ppo: PpoSettings = parse(&settings.agent, "agent").unwrap();
    assert_eq!((ppo.clip, ppo.optimizer.learning_rate, ppo.epochs), (0.1.into(), 1.0.into(), 2));
    assert_eq!((settings.training_loop.environments(), settings.training_loop.unroll()), (8, 128));
    assert_eq!(settings.experiment, "mine");

    fs::write(&middle, "base = 'middle.toml'").unwrap();
    assert!(mistake(set(mine.to_str().unwrap(), &[])).contains("based on one another"));
}

#[test]
fn another_agent_comes_with_its_own_defaults() {
    let settings = set("catch-ppo", &["agent.kind=online", "agent.discount=0.5"]).unwrap();
    let online: OnlineSettings = parse(&settings.agent, "agent").unwrap();
    assert_eq!(online.discount, 0.5.into());
    let text = mistake(set("catch-ppo", &["agent.kind=online", "agent.clip=0.5"]));
    assert!(text.contains("`agent.clip` is not a setting; [agent] takes activation, "), "{text}");
    let settings = set("catch-ppo", &["environment.name=cartpole"]).unwrap();
    assert_eq!(settings.environment_name(), "cartpole");
}

#[test]
fn flags_win() {
    let overrides = Overrides {
        seed: Some(7),
        steps: Some(9),
        devices: Some(Devices::All),
        set: vec!["train.seed=1".to_owned(), "train.steps=1".to_owned()],
        ..Overrides::default()
    };
    let train = load("catch-ppo", &overrides).unwrap().train;
    assert_eq!((train.seed, train.steps, train.devices), (7, 9, Devices::All));
}

#[test]
fn mistakes_say_what_is_allowed() {
    let cases: &[(&str, &str)] = &[
        ("agent.learning_rat=1", "did you mean `learning_rate`"),
        (
            "agent.learning_rate=fast",
            "`agent.learning_rate` must be a number and is the string \"fast\"",
        ),
        ("agent.learning_rate=-1", "agent.learning_rate must be a number above 0 and is -1"),
        ("agent.learning_rate=nan", "must be a number above 0 and is NaN"),
        ("agent.learning_rate=1e39", "must be at most 3.4028235e38 in magnitude and is 1e39"),
        ("agent.hidden=64", "`agent.hidden` must be a list and is `64`"),
        ("agent.hidden=[1.5]", "each of its elements must be an integer"),
        ("agent.hidden=[0]", "agent.hidden must name at most 64 layers of 1 to 65536 units each"),
        ("agent.anneal_learning_rate=1", "must be true or false and is `1`"),
        ("agent.discount=1.1", "agent.discount must be between 0 and 1 and is 1.1"),
        ("agent.kind=pppo", "; did you mean `ppo`?"),
        ("anakin.environments=0", "anakin.environments must be at least 1 and is 0"),
        (
            "anakin.environments=-4",
            "`anakin.environments` must be an integer of at least 0 and is `-4`",
        ),
        (
            "anakin.environments=1000000000",
            "multiply to 32000000000 steps in an iteration, which i32 does not count",
        ),
        (
            "anakin.environments=1000000000000000000",
            "anakin.environments must be at most 2147483647 and is 1000000000000000000",
        ),
        ("anakin.unroll=9223372036854775807", "anakin.unroll must be at most 1000000 and is 9"),
        ("train.steps=0", "train.steps must be at least 1"),
        ("train.steps=9000000000000000", "train.steps is 9000000000000000 and must be at most"),
        ("train.platform=gpu", "must be one of: cpu, cuda13, tpu"),
        ("train.devices=0", "train.devices must be at least 1"),
        ("train.devices=two", "a number of devices"),
        ("environment.rows=1", "environment.rows must be at least 2"),
        ("environment.row=1", "[environment] takes "),
        ("optimizer.name=sgd", "`optimizer` is not a setting; the tables are [train]"),
        ("anakin.updates_per_call=1", "is called `anakin.iterations_per_call` now"),
        ("anakin.replay=host", "one on the host needs the other loop, `sebulba.replay = \"host\"`"),
        ("sebulba.replay=disk", "sebulba.replay is `disk` and must be one of: device, host"),
        ("sebulba.replay_folder=/tmp", "a folder is for sebulba.replay = \"host\""),
        ("xla.vector_width=1", "a name that begins with `xla_`"),
        ("agent", "--set takes `table.key=value`"),
        ("clip=1", "--set takes `table.key=value`"),
    ];
    for (one, expected) in cases {
        let text = mistake(set("catch-ppo", &[one]));
        assert!(text.contains(expected), "--set {one}: {text}");
    }
    let cases: &[(&str, &str)] = &[
        (
            "agent.optimizer=lion",
            "agent.optimizer is `lion` and must be one of: rmsprop, adam, sgd",
        ),
        ("agent.advantage=gae", "agent.advantage is `gae` and must be one of: impala, rlax"),
        (
            "agent.reward_clipping=one",
            "agent.reward_clipping is `one` and must be one of: none, abs_one",
        ),
        ("agent.epsilon=0", "agent.epsilon must be a number above 0 and is 0"),
        ("agent.rmsprop_decay=2", "agent.rmsprop_decay must be between 0 and 1 and is 2"),
        ("agent.clip_rho=0", "agent.clip_rho must be a number above 0"),
        ("agent.clip_c=-1", "agent.clip_c must be a number above 0"),
        ("agent.clip_pg_rho=inf", "agent.clip_pg_rho must be a number above 0"),
        ("agent.lstm=-1", "`agent.lstm` must be an integer of at least 0"),
        ("agent.torso=cnn", "agent.torso is `cnn` and must be one of: none, conv, residual"),
        (
            "agent.convs=[[16, 8]]",
            "agent.convs must have the channels, the side of the window and the stride",
        ),
        ("agent.convs=[16]", "each of its elements must be a list"),
        ("agent.convs=[]", "agent.convs must have"),
        ("agent.sections=[0]", "agent.sections must name 1 to 64 sections of 1 to 65536 channels"),
        ("agent.features=0", "agent.features must be at least 1"),
        ("environment.name=memory-chian", "did you mean `memory-chain`"),
    ];
    for (one, expected) in cases {
        let text = mistake(set("catch-impala", &[one]));
        assert!(text.contains(expected), "--set {one}: {text}");
    }
    let text = mistake(set("memory-impala", &["environment.length=0"]));
    assert!(text.contains("environment.length must be at least 1"), "{text}");
    let text = mistake(set("catch-ppo", &["agent.clip=0", "agent.epochs=0"]));
    assert!(text.starts_with("2 mistakes:"), "{text}");
}

#[test]
fn names_of_other_libraries_get_ours() {
    for (experiment, one, expected) in [
        ("catch-ppo", "agent.lr=1", "did you mean `learning_rate`?"),
        ("catch-ppo", "agent.gamma=1", "did you mean `discount`?"),
        ("catch-ppo", "agent.gae_lambda=1", "did you mean `lambda`?"),
        ("catch-ppo", "agent.ent_coef=1", "did you mean `entropy_cost`?"),
        ("catch-ppo", "agent.vf_coef=1", "did you mean `value_cost`?"),
        ("catch-ppo", "agent.max_grad_norm=1", "did you mean `max_gradient_norm`?"),
        ("catch-ppo", "agent.clip_range=1", "did you mean `clip`?"),
        ("catch-ppo", "anakin.num_envs=1", "did you mean `environments`?"),
        ("catch-ppo", "anakin.n_steps=1", "did you mean `unroll`?"),
        ("catch-ppo", "train.total_timesteps=1", "did you mean `steps`?"),
        ("catch-ppo", "environment.name=CartPole-v1", "did you mean `cartpole`?"),
        ("catch-ppo", "environment.name=MountainCar-v0", "did you mean `mountain-car`?"),
        ("CartPole-v1", "train.steps=1", "did you mean `cartpole-ppo` or "),
    ] {
        let text = mistake(set(experiment, &[one]));
        assert!(text.contains(expected), "{experiment}, --set {one}: {text}");
    }
    // A table without the setting suggests no other name for it.
    let text = mistake(set("catch-ppo", &["agent.tau=1"]));
    assert!(!text.contains("polyak"), "{text}");
}

#[test]
fn whole_numbers_may_be_written_with_an_exponent() {
    let settings = set("catch-ppo", &["train.steps=1e6", "agent.hidden=[64.0]"]).unwrap();
    assert_eq!(settings.train.steps, 1_000_000);
    let ppo: PpoSettings = parse(&settings.agent, "agent").unwrap();
    assert_eq!(ppo.networks.hidden, [64]);
    for (one, expected) in [
        ("train.steps=1.5", "`train.steps` must be an integer of at least 0 and is `1.5`"),
        ("train.steps=1e300", "`train.steps` must be an integer of at least 0 and is `1e300`"),
        ("train.steps=-1e6", "`train.steps` must be an integer of at least 0 and is `-1000000"),
    ] {
        let text = mistake(set("catch-ppo", &[one]));
        assert!(text.contains(expected), "--set {one}: {text}");
    }
}

#[test]
fn large_numbers_are_printed_with_an_exponent() {
    for (one, expected) in [
        ("agent.learning_rate=1e308", "in magnitude and is 1e308"),
        ("agent.discount=1e308", "between 0 and 1 and is 1e308"),
        ("agent.hidden=1e308", "must be a list and is `1e308`"),
        ("agent.hidden=[1e308]", "is the list `[1e308]`"),
    ] {
        let text = mistake(set("catch-ppo", &[one]));
        assert!(text.contains(expected), "--set {one}: {text}");
    }
}

#[test]
fn experiments_that_are_none() {
    let text = mistake(set("cartpol-ppo", &[]));
    assert!(text.contains("did you mean `cartpole-ppo`"), "{text}");
    assert!(text.contains("`podracer list` shows all experiments"), "{text}");
    assert!(mistake(set("catch", &[])).contains("did you mean `catch-ppo` or `catch-"));

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    let path = path.to_str().unwrap();
    assert!(format!("{:#}", set(path, &[]).unwrap_err()).contains("cannot read the experiment"));
    for (text, expected) in [
        ("[agent\n", "TOML parse error at line 1"),
        ("sead = 1", "`sead` is not a setting"),
        ("train = 1", "`train` must be a table"),
        ("base = 1", "`base` must name an experiment"),
        ("base = 'cartpole'", "did you mean `cartpole-ppo`"),
        ("[agent]\nkind = 'ppo'", "neither a `base` nor [environment]"),
        (
            "[agent]\nclip = 1\n[environment]\nname = 'catch'",
            "must have a `kind`, one of: ppo, online, impala, ",
        ),
        ("base = 'catch-ppo'\nexperiment = 'a/b'", "names folders"),
    ] {
        fs::write(path, text).unwrap();
        let message = mistake(set(path, &[]));
        assert!(message.contains(expected), "{text}: {message}");
    }
}

#[test]
fn a_layout_is_a_map() {
    for (layout, expected) in [
        ("['.G', '.']", "environment.layout: row 1 has 1 cells"),
        ("['.x', 'G.']", "row 0, column 1"),
        ("['..']", "has no goal"),
        ("['G']", "no free cell"),
        ("['.#G']", "no path leads from here"),
    ] {
        let text = mistake(set("gridworld-ppo", &[&format!("environment.layout={layout}")]));
        assert!(text.contains(expected), "{layout}: {text}");
    }
}

#[test]
fn xla_settings_win_over_the_rule() {
    use podracer_runtime::OptionValue::{Bool, Int};
    let settings = set("catch-ppo", &["xla.xla_width=128", "xla.xla_new=true"]).unwrap();
    let rule = vec![("xla_width".to_owned(), Int(512)), ("xla_old".to_owned(), Bool(false))];
    let expected = [("xla_new", Bool(true)), ("xla_old", Bool(false)), ("xla_width", Int(128))];
    let expected = expected.map(|(name, value)| (name.to_owned(), value));
    assert_eq!(settings.xla_options(rule), expected);
}

#[test]
fn loops_are_made_for_the_platform_and_the_agent() {
    let made = |sets: &[&str], platform, searches| {
        let settings = set("catch-ppo", sets).unwrap();
        let options = settings.program.options(platform, searches);
        (options.launches, options.whole_loops)
    };
    assert_eq!(made(&[], "cpu", false), (false, false));
    assert_eq!(made(&[], "cpu", true), (false, true));
    assert_eq!(made(&[], "cuda13", true), (true, false));
    assert_eq!(made(&["program.launches=false"], "cuda13", false), (false, false));
    assert_eq!(made(&["program.launches=true"], "cpu", false), (true, false));
    assert_eq!(made(&["program.whole_loops=false"], "cpu", true), (false, false));
    assert_eq!(made(&["program.whole_loops=true"], "cpu", false), (false, true));
}

#[test]
fn the_groups_of_simplification_are_settings() {
    use podracer_compiler::simplify::{Group, Options};
    let settings = set("catch-ppo", &[]).unwrap();
    assert_eq!(settings.program.options("cpu", false), Options::default());
    let settings = set("catch-ppo", &["program.simplify=['fold', 'algebra']"]).unwrap();
    let expected = Options::default().with(Group::Fold).with(Group::Algebra);
    assert_eq!(settings.program.options("cpu", false), expected);
    let wrong = mistake(set("catch-ppo", &["program.simplify=['folds']"]));
    assert!(wrong.contains("program.simplify") && wrong.contains("fold"), "{wrong}");
    let wrong = mistake(set("catch-ppo", &["program.simplifies=['fold']"]));
    assert!(wrong.contains("simplify"), "{wrong}");
}

#[test]
fn sebulba_takes_the_place_of_anakin() {
    let settings = set("cartpole-sebulba-ppo", &["sebulba.threads=3"]).unwrap();
    let shape = |settings: &Settings| {
        let one = &settings.training_loop;
        (one.lanes(), one.unroll(), one.iterations_per_call())
    };
    assert_eq!(shape(&settings), (24, 64, 8));
    // Its text has no [anakin], and reads back as the same settings.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.toml");
    let text = settings.to_toml().unwrap();
    assert!(!text.contains("[anakin]"), "{text}");
    fs::write(&path, text).unwrap();
    assert_eq!(set(path.to_str().unwrap(), &[]).unwrap(), settings);

    let both = mistake(set("cartpole-sebulba-ppo", &["anakin.unroll=3"]));
    assert!(both.contains("[anakin] and [sebulba] exclude each other"), "{both}");
    let [one, other] = ["[anakin]\nunroll = 3", "[sebulba]\nunroll = 5"];
    for tables in [[one, other], [other, one]] {
        fs::write(&path, format!("base = 'catch-ppo'\n{}\n", tables.join("\n"))).unwrap();
        let both = mistake(set(path.to_str().unwrap(), &[]));
        assert!(both.contains("[anakin] and [sebulba] exclude each other"), "{both}");
    }
    let schedule = mistake(set("cartpole-sebulba-ppo", &["sebulba.schedule=none"]));
    assert!(schedule.contains("one of: deterministic, free-running"), "{schedule}");

    // Any experiment can be switched to the loop.
    let catch = set("catch-ppo", &["sebulba.environments=16"]).unwrap();
    assert_eq!(shape(&catch), (32, 32, 16));
    let overrides = Overrides { learners: Some(vec![1]), ..Overrides::default() };
    let flag = mistake(load("catch-ppo", &overrides));
    assert!(flag.contains("--learners is for experiments with [sebulba]"), "{flag}");
}

#[test]
fn a_preset_decides_settings_without_other_values() {
    let atari = |sets: &[&str]| -> Atari {
        parse(&set("atari-pong-ppo", sets).unwrap().environment, "environment").unwrap()
    };
    assert!(atari(&[]).processing.clip_rewards);
    let seed = atari(&["environment.preset=seed"]);
    assert_eq!(seed.game, "pong");
    assert!(!seed.processing.clip_rewards && seed.processing.full_actions);
    let changed = atari(&["environment.preset=seed", "environment.stack=2"]);
    assert_eq!((changed.processing.stack, changed.processing.full_actions), (2, true));
    // A run's own settings name the preset, and all changes to it.
    let stated = ["environment.preset=ppo", "environment.clip_rewards=false"];
    assert!(!atari(&stated).processing.clip_rewards);
}

#[test]
fn servers_have_settings_of_their_own() {
    let gymnasium = |sets: &[&str]| {
        let name = [
            "environment.name=gymnasium",
            "environment.kwargs={ gravity = 1.6, deep = { a = 1 } }",
        ];
        set("cartpole-sebulba-ppo", &[&name, sets].concat())
    };
    let settings = gymnasium(&["environment.servers=2"]).unwrap();
    let environment: Gymnasium = parse(&settings.environment, "environment").unwrap();
    assert_eq!(environment.kwargs["gravity"].as_f64(), Some(1.6));
    assert_eq!(environment.server.servers, 2);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    fs::write(&file, settings.to_toml().unwrap()).unwrap();
    let again = load(file.to_str().unwrap(), &Overrides::default()).unwrap();
    assert_eq!(again.environment, settings.environment);

    for (sets, expected) in [
        (
            &["environment.vectorization=threads"][..],
            "environment.vectorization is `threads` and must be one of: sync, async, native",
        ),
        (&["environment.kwargs=3"], "`environment.kwargs` must be a table and is `3`"),
        (
            &["environment.servers=9"],
            "environment.servers is 9 and must be at most sebulba.environments = 8",
        ),
        (&["environment.servers=0"], "environment.servers must be at least 1"),
        (&["environment.step_seconds=60"], "sebulba.patience is 120 and must be more than 140"),
        (&["environment.preset=seed"], "`environment.preset` is not a setting"),
    ] {
        let message = mistake(gymnasium(sets));
        assert!(message.contains(expected), "{message}");
    }
    let preset = mistake(set("atari-pong-ppo", &["environment.preset=dqn"]));
    assert!(
        preset.contains("environment.preset is `dqn` and must be one of: ppo, seed"),
        "{preset}"
    );
}

#[test]
fn devices_of_actors_and_learners_are_named_once() {
    for role in ["actors", "learners"] {
        let twice = format!("sebulba.{role}=[2,1,2]");
        let said = mistake(set("cartpole-sebulba-ppo", &[&twice]));
        assert!(said.contains(&format!("sebulba.{role} names device 2 twice")), "{said}");
    }
}

#[test]
fn what_a_file_names_is_used_if_the_user_names_it_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("theirs.toml");
    let with = |lines: &str, overrides: &Overrides| {
        fs::write(&path, format!("base = 'cartpole-sebulba-ppo'\n{lines}")).unwrap();
        load(path.to_str().unwrap(), overrides).map_err(|error| format!("{error:#}"))
    };
    let nothing = Overrides::default();
    let python = "environment = { name = 'gymnasium', python = '/opt/theirs' }\n";
    let dump = "xla.xla_dump_to = '/opt/dump'\n";
    let error = with(&format!("{python}{dump}"), &nothing).unwrap_err();
    for part in ["`environment.python` is `/opt/theirs`", "`xla.xla_dump_to` is `/opt/dump`"] {
        assert!(error.contains(part), "{error}");
    }
    with(&format!("{python}{dump}"), &Overrides { trust: true, ..Overrides::default() }).unwrap();
    let set = vec!["environment.python=/opt/mine".to_owned()];
    let settings = with(python, &Overrides { set, ..Overrides::default() }).unwrap();
    assert_eq!(settings.environment["python"].as_str(), Some("/opt/mine"));
    // A base is a file as well, and unused programs need no trust.
    let base = folder.path().join("base.toml");
    fs::write(&base, format!("base = 'cartpole-sebulba-ppo'\n{python}")).unwrap();
    let on_base = |lines: &str| {
        fs::write(&path, format!("base = 'base.toml'\n{lines}")).unwrap();
        load(path.to_str().unwrap(), &nothing).map_err(|error| format!("{error:#}"))
    };
    let error = on_base("").unwrap_err();
    assert!(error.contains(&format!("{}: `environment.python`", base.display())), "{error}");
    on_base("environment.python = 'none'").unwrap();
    on_base("environment.name = 'cartpole'").unwrap();
    with("xla.xla_cpu_prefer_vector_width = 128\n", &nothing).unwrap();
}

/// A received experiment could otherwise be a link to an endless device.
#[test]
fn an_experiment_is_a_regular_file_of_a_bounded_size() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("theirs.toml");
    let error =
        || format!("{:#}", load(path.to_str().unwrap(), &Overrides::default()).unwrap_err());
    std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
    let said = error();
    assert!(said.contains("theirs.toml`: it is a device and must be a regular file"), "{said}");
    fs::remove_file(&path).unwrap();
    fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
    let said = error();
    assert!(said.contains("it has 1099511627776 bytes, and at most 16777216 are read"), "{said}");
}
