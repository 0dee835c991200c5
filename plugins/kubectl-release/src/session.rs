//! One run: what the command line said, the way out, and the cluster once somebody asks for it.

use crate::{
    cli::GlobalArgs,
    connect::{self, Cluster},
    error::Error,
    out::Out,
    print::{
        Style,
        style::{ColorChoice, is_utf8},
    },
};

/// One run of a verb.
#[derive(Debug)]
pub struct Session<'a> {
    /// What applies to every verb.
    pub global: GlobalArgs,
    /// The way out.
    pub out: &'a mut Out,
    cluster: Option<Cluster>,
}

impl<'a> Session<'a> {
    /// A run that has not spoken to a cluster yet. Colour and characters are decided here.
    pub fn new(global: GlobalArgs, out: &'a mut Out) -> Self {
        let style = &global.style;
        let choice = if style.no_color { ColorChoice::Never } else { style.color };
        let ascii = style.ascii || !is_utf8(|name| out.variable(name));
        let colour = |terminal| choice.decide(terminal, |name| out.variable(name));
        let (stdout, stderr) = (colour(out.terminal.stdout), colour(out.terminal.stderr));
        out.style = Style { colour: stdout, ascii };
        out.error_style = Style { colour: stderr, ascii };
        Self { global, out, cluster: None }
    }

    /// The cluster of the command line; it is prepared once.
    ///
    /// # Errors
    /// The kubeconfig or the flags cannot be used.
    pub fn cluster(&mut self) -> Result<Cluster, Error> {
        if let Some(cluster) = &self.cluster {
            return Ok(cluster.clone());
        }
        let cluster = connect::connect(&self.global.cluster, &self.out.environment)?;
        Ok(self.cluster.insert(cluster).clone())
    }

    /// Asks, with `No` as the default. Only where standard input and standard error are terminals;
    /// otherwise the question is refused.
    ///
    /// # Errors
    /// [`Class::Usage`](crate::Class::Usage) with `refusal` where nobody can be asked.
    pub fn confirm(&mut self, question: &str, refusal: &str) -> Result<bool, Error> {
        if !(self.out.terminal.stdin && self.out.terminal.stderr) {
            return Err(Error::usage(refusal));
        }
        let answer = self.out.ask(format!("{question} [y/N] "))?;
        let answer = answer.unwrap_or_default().trim().to_ascii_lowercase();
        Ok(answer == "y" || answer == "yes")
    }
}
