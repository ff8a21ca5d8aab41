//! What a dialog wants typed before its answer counts: a name, and for some commands a reason.

use crate::rollout::command::{Command, Consent};
use crate::rollout::view::ByName;

/// The longest reason that is taken: a sentence or two.
const LONGEST_REASON: usize = 200;
/// What may be typed beyond the longest name, so that a slip can be seen.
const BEYOND: usize = 8;

/// What must be typed, and what has been.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Typed {
    wanted: ByName,
    name: String,
    /// `None` where none is asked for.
    reason: Option<String>,
    is_at_reason: bool,
}

impl Typed {
    /// Wants this name.
    pub(crate) fn name(command: Command, name: &str) -> Self {
        let wanted = ByName { command, typed: vec![name.to_owned()], means: Vec::new() };
        Self { wanted, name: String::new(), reason: None, is_at_reason: false }
    }

    /// Wants what the engine wants for a command that is given by name, and a reason.
    pub(crate) fn with_reason(wanted: &ByName) -> Self {
        Self { wanted: wanted.clone(), name: String::new(), reason: Some(String::new()), is_at_reason: false }
    }

    /// Takes over what was typed before into a dialog that asks for the same anew.
    pub(crate) fn keep(&mut self, before: Self) {
        *self = Self { wanted: self.wanted.clone(), ..before };
    }

    fn field(&mut self) -> (&mut String, usize) {
        let longest = self.wanted.typed.iter().map(String::len).max().unwrap_or_default();
        match &mut self.reason {
            Some(reason) if self.is_at_reason => (reason, LONGEST_REASON),
            _ => (&mut self.name, longest + BEYOND),
        }
    }

    /// Types.
    pub(crate) fn push(&mut self, c: char) {
        let (field, longest) = self.field();
        if field.len() < longest && !c.is_control() {
            field.push(c);
        }
    }

    /// Takes the last character away.
    pub(crate) fn pop(&mut self) {
        self.field().0.pop();
    }

    /// To the reason; says whether it was not there yet.
    pub(crate) const fn forward(&mut self) -> bool {
        let moves = self.reason.is_some() && !self.is_at_reason;
        self.is_at_reason |= moves;
        moves
    }

    /// Back to the name; says whether it was not there.
    pub(crate) const fn back(&mut self) -> bool {
        std::mem::replace(&mut self.is_at_reason, false)
    }

    /// Whether the field that is typed into has what it needs.
    pub(crate) fn is_filled(&self) -> bool {
        match &self.reason {
            Some(reason) if self.is_at_reason => !reason.trim().is_empty(),
            _ => self.wanted.accepts(&self.name),
        }
    }

    /// What is still to be typed, in words.
    pub(crate) fn missing(&self) -> Option<String> {
        if !self.wanted.accepts(&self.name) {
            return Some(format!("type {} first", self.wanted.typed.join(" or ")));
        }
        let is_mute = self.reason.as_ref().is_some_and(|reason| reason.trim().is_empty());
        is_mute.then(|| "say why first: the reason is kept in the journal".to_owned())
    }

    /// What goes with the command, where it is given by name.
    pub(crate) fn consent(&self) -> Option<Consent> {
        let reason = self.reason.as_ref()?;
        Some(Consent { typed: self.name.trim().to_owned(), reason: reason.trim().to_owned() })
    }

    /// The fields: what each asks for, what is in it, and whether it is typed into.
    pub(crate) fn fields(&self) -> Vec<(String, &str, bool)> {
        let name = format!("Type {} to go on:", self.wanted.typed.join(" or "));
        let mut fields = vec![(name, self.name.as_str(), !self.is_at_reason)];
        if let Some(reason) = &self.reason {
            fields.push(("And why (Tab goes there; it is kept in the journal):".to_owned(), reason, self.is_at_reason));
        }
        fields
    }
}
