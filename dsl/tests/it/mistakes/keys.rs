//! Mistakes with keys, distributions and checks.

use podracer_dsl::prelude::*;

super::mistakes! {
    "keys.rs":
    a_key_captured_by_a_loop: key(), |k| scan(0.0, 0..3, |sum, _| (sum + k.normal([]), ())).0
        => "key: a key from outside is used in the body of `scan`: every round draws the same numbers; pass `key.split_n(n)` to `scan`, carry it, or `fold_in` the index (`key.again()` if the same numbers are meant)", "normal";
    a_stack_of_keys_as_one: key(), |k| vmap(k.split_n(2), |k| k).normal([])
        => "key: expected one key, u32[2], got u32[2,2]: go over a stack of keys with `vmap` or `scan`", "normal";
    a_key_of_the_wrong_words: u32([3]), |words| Key::from_words(words).normal([])
        => "Key::from_words: expected u32[2], got u32[3]", "Key::from_words";
    a_row_of_another_extent: (f32([3, 4]), f32([3])), |(x, y)| x + y
        => "add: f32[3,4] and f32[3] do not broadcast (axis 1: 4 against 3)", "x + y";
    six_axes_for_three: f32([2, 3]), |x| x.reshape([2, 3, 0])
        => "reshape: f32[2,3] has 6 elements, f32[2,3,0] has 0", "reshape";
    folding_in_a_float: (key(), f32([])), |(k, x)| k.fold_in(x).normal([])
        => "fold_in: expected an integer scalar, got f32[]", "fold_in";
    a_seed_that_is_a_float: f32([]), |x| Key::new(x).normal([])
        => "Key::new: expected an integer scalar as the seed, got f32[]", "Key::new";
    a_uniform_of_integers: key(), |k| k.uniform_of(I32, [3])
        => "uniform: expected a float type, got i32", "uniform_of";
    a_choice_of_nothing: (key(), f32([0])), |(k, x)| k.choice(x, [2])
        => "choice: expected at least one item, got f32[0]", "choice";
    more_distinct_choices_than_items: (key(), f32([2])), |(k, x)| k.choice_distinct(x, 3)
        => "choice_distinct: expected at least 3 items, got f32[2]", "choice_distinct";
    weights_for_other_items: (key(), f32([3]), f32([2])), |(k, x, w)| k.choice_weighted(x, w, [])
        => "choice_weighted: expected one float weight for each item, got f32[2] for f32[3]", "choice_weighted";
    logits_that_are_integers: (key(), i32([3])), |(k, x)| k.categorical(x)
        => "categorical: expected float logits with an axis of choices, got i32[3]", "categorical";
    a_probability_that_is_an_integer: (key(), i32([])), |(k, p)| k.bernoulli([3], p)
        => "bernoulli: expected a float probability, got i32[]", "bernoulli";
    a_gamma_of_a_vector_of_integers: (key(), i32([3])), |(k, a)| k.gamma([3], a)
        => "gamma: expected f32 parameters, got i32[3]", "gamma";
    concentrations_without_an_axis: (key(), f32([])), |(k, a)| k.dirichlet([3], a)
        => "dirichlet: expected concentrations along an axis, got f32[]", "dirichlet";
    a_check_of_a_number: f32([]), |x| collect(|| check(x, "wrong", ())).1
        => "check: the condition must be bool, got f32[]", "check";
    a_message_with_too_few_values: f32([]), |x| collect(|| debug_print("{} and {}", x)).1
        => "debug_print: the message has 2 `{}`, got 1 values", "debug_print";
}
