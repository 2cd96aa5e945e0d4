import type { ClockStop } from '../../src/domain/merchants/clock';

/** Activity of the sandbox bank, whose next steps follow an account's clock. */
export interface ClockConnectorActivities {
  /**
   * Does what is due by the new time; safe to repeat.
   * @see docs/api.md#sandbox-clock
   */
  advanceBankClock(input: BankClockAdvance): Promise<BankClockStop>;
}

export interface BankClockStop extends ClockStop {
  /** Reports that are on their way, with their workflows. One that is gone next time has arrived. */
  reporting: [report: string, workflow_id: string][];
  /** Workflows about which the bank reports at its next due time. */
  awaited: string[];
}

export interface BankClockAdvance {
  account_id: string;
  /** Ms ahead of the real time. */
  offset_ms: number;
  /** Offset before this advance, in ms. */
  from_ms: number;
}
