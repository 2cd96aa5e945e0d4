import type { Evidence } from '../../src/domain/dispute/evidence';
import type { RecipientDetails } from '../../src/domain/payout/recipient';
import type { Attempt, InstructionGuard } from '../contract/guard';
import type { ConnectorDefinition, Settings, Tools } from './definition';
import type { InstructionStore } from './instructions';

export interface ActivityDeps<S extends Settings> {
  definition: ConnectorDefinition<S>;
  /** Ends the tools of an activity with its attempt. */
  buildTools: (attempt: Attempt) => Tools<S>;
  instructions: InstructionStore;
  findOutdated: InstructionGuard['findOutdated'];
  decryptRecipient: (payout_id: string) => Promise<RecipientDetails>;
  decryptEvidence: (dispute_id: string) => Promise<Evidence>;
  readReference: (payout_id: string) => Promise<string | null>;
  livemode: boolean;
  now: () => Date;
}
