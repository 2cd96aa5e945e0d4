/** Words of a command that has done nothing: a server was slow, or write conflicts lasted too long. */
export const NOT_DONE =
  /(MongoDB|Temporal) does not answer at|Temporal did not do it|this step was not done: run it again/;
