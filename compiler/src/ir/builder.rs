//! Builds a function equation by equation and infers types.

use super::{Eqn, Func, Loc, Var, Vars};
use crate::ops::{Op, OpRef, TypeError};
use crate::types::TensorType;

/// A function under construction. The modules of the ops define convenience methods that emit
/// single ops, such as `builder.add(x, y)`.
#[derive(Clone, Debug, Default)]
pub struct Builder {
    types: Vec<TensorType>,
    params: Vec<Var>,
    eqns: Vec<Eqn>,
    loc: Loc,
}

impl Builder {
    /// An empty function.
    pub fn new() -> Self {
        Builder::default()
    }

    /// Sets the source location of the equations that are emitted from now on.
    pub fn set_loc(&mut self, loc: Loc) {
        self.loc = loc;
    }

    /// The current source location.
    pub fn loc(&self) -> Loc {
        self.loc
    }

    /// Adds a parameter.
    pub fn param(&mut self, ty: TensorType) -> Var {
        let var = self.fresh(ty);
        self.params.push(var);
        var
    }

    /// Adds a parameter of each of these types.
    pub fn add_params(&mut self, types: impl IntoIterator<Item = TensorType>) -> Vec<Var> {
        types.into_iter().map(|ty| self.param(ty)).collect()
    }

    /// The type of a variable.
    pub fn ty(&self, var: Var) -> &TensorType {
        &self.types[var.index()]
    }

    /// The types of some variables.
    pub fn types(&self, vars: &[Var]) -> Vec<TensorType> {
        vars.iter().map(|&var| self.ty(var).clone()).collect()
    }

    /// The parameters so far.
    pub fn params(&self) -> &[Var] {
        &self.params
    }

    /// The equations so far.
    pub fn eqns(&self) -> &[Eqn] {
        &self.eqns
    }

    /// Adds an equation, or returns the reason why the op does not accept these operands.
    pub fn try_emit(&mut self, op: OpRef, inputs: &[Var]) -> Result<Vec<Var>, TypeError> {
        let outputs: Vec<Var> =
            op.infer(&self.types(inputs))?.into_iter().map(|ty| self.fresh(ty)).collect();
        self.eqns.push(Eqn {
            op,
            inputs: inputs.into(),
            outputs: outputs[..].into(),
            loc: self.loc,
        });
        Ok(outputs)
    }

    /// Adds an equation with operands that are known to fit: the form for rules and transforms.
    #[track_caller]
    pub fn emit_ref(&mut self, op: OpRef, inputs: &[Var]) -> Vec<Var> {
        let mnemonic = op.mnemonic();
        match self.try_emit(op, inputs) {
            Ok(outputs) => outputs,
            Err(error) => {
                panic!("a rule emitted an ill-typed {mnemonic} for {}: {error}", self.loc)
            }
        }
    }

    /// [`Builder::emit_ref`] for an op by value.
    #[track_caller]
    pub fn emit(&mut self, op: impl Op, inputs: &[Var]) -> Vec<Var> {
        self.emit_ref(OpRef::new(op), inputs)
    }

    /// [`Builder::emit`] for an op with one result.
    #[track_caller]
    pub fn emit1(&mut self, op: impl Op, inputs: &[Var]) -> Var {
        let outputs = self.emit(op, inputs);
        assert_eq!(outputs.len(), 1, "emit1 is for ops with one result");
        outputs[0]
    }

    /// Copies a function's equations into the function under construction, with its parameters
    /// replaced by `arguments`; returns its results.
    pub fn inline(&mut self, func: &Func, arguments: &[Var]) -> Vec<Var> {
        assert_eq!(func.params.len(), arguments.len(), "inline: one argument per parameter");
        let mut map: Vec<Option<Var>> = vec![None; func.types.len()];
        for (&param, &argument) in func.params.iter().zip(arguments) {
            debug_assert_eq!(
                func.ty(param),
                self.ty(argument),
                "inline: argument and parameter types differ"
            );
            map[param.index()] = Some(argument);
        }
        let outer = self.loc;
        for eqn in &func.eqns {
            let inputs = eqn.inputs.iter().map(|&var| lookup(&map, var)).collect();
            let outputs: Vars =
                eqn.outputs.iter().map(|&var| self.fresh(func.ty(var).clone())).collect();
            for (&from, &to) in eqn.outputs.iter().zip(&outputs) {
                map[from.index()] = Some(to);
            }
            self.eqns.push(Eqn { op: eqn.op.clone(), inputs, outputs, loc: eqn.loc });
        }
        self.loc = outer;
        func.results.iter().map(|&var| lookup(&map, var)).collect()
    }

    /// Ends the function. Verified in debug builds.
    pub fn finish(self, name: impl Into<String>, results: Vec<Var>) -> Func {
        let func = Func {
            name: name.into(),
            types: self.types,
            params: self.params,
            eqns: self.eqns,
            results,
        };
        #[cfg(debug_assertions)]
        if let Err(error) = super::verify(&func) {
            panic!("{error}");
        }
        func
    }

    fn fresh(&mut self, ty: TensorType) -> Var {
        let var = Var(u32::try_from(self.types.len()).expect("fewer than 2^32 variables"));
        self.types.push(ty);
        var
    }
}

fn lookup(map: &[Option<Var>], var: Var) -> Var {
    map[var.index()].expect("variables are defined before they are used")
}
