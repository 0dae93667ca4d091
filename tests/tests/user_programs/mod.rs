//! Programs as users write them, from the facade's prelude: the pages of the design, and the mistakes one makes.

mod agents;
mod bodies;
mod choices;
mod mistakes;
mod pages;
mod warnings;
