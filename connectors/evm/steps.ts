/** Steps of the connector between which its process may die, in words for tests that kill it there. */
export type Step =
  | 'address derived'
  | 'block read'
  | 'block kept'
  | 'branch left'
  | 'deposit to be told'
  | 'deposit told'
  | 'settlement signed'
  | 'settlement kept'
  | 'settlement broadcast'
  | 'fee raised'
  | 'settlement to be told'
  | 'settlement told';

/** Called at each step; what it throws ends the work there. */
export type StepHook = (step: Step) => void;
