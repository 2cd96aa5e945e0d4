import type { Outdated } from './activities';

/**
 * Activities that a crypto connector implements on its own task queue `connector-{name}`.
 *
 * Each instruction carries an id made once: a repeat with the same id must give the same answer and
 * move nothing twice. A decline is a value, an outage an exception (it is retried). Amounts are
 * integers in the asset's smallest unit, as texts. Nothing here names a payer: inputs and answers
 * stand in Temporal's history. @see docs/connectors.md#crypto-connectors
 */
export interface CryptoConnectorActivities {
  /** Says what a payer owes in the asset; fixed for the window. Asked again, it may say another. */
  quoteRate(input: RateQuestion): Promise<RateAnswer>;
  /** Gives the address of one payment, and watches it from then on. Id: `crypto_payment_id`. */
  giveAddress(input: AddressInstruction): Promise<AddressAnswer>;
  /** Screens where a confirmed deposit came from, which the connector knows by its transaction. */
  screenSource(input: ScreeningQuestion): Promise<ScreeningAnswer>;
  /** Pays a balance out, in one transaction on the chain however often it is asked for. */
  sendSettlement(input: SettlementInstruction): Promise<SettlementAnswer | Outdated>;
  /**
   * Asks about a settlement whose instruction ended without an answer. `not_found` must mean that
   * it never arrived: the instruction is then sent again, under the same id.
   */
  lookUpSettlement(input: { crypto_settlement_id: string }): Promise<SettlementLookup>;
}

export interface RateQuestion {
  crypto_payment_id: string;
  /** Minor units of `currency`. */
  amount: number;
  /** ISO 4217. */
  currency: string;
  asset: string;
  network: string;
  livemode: boolean;
}

export type RateAnswer =
  | {
      outcome: 'quoted';
      /** Smallest units, at least 1, rounded up. */
      amount_due: string;
      /** Price of one whole coin in `currency`, a decimal number for people. */
      rate: string;
    }
  | { outcome: 'declined'; code: string; message: string };

export interface AddressInstruction {
  crypto_payment_id: string;
  asset: string;
  network: string;
  /** Smallest units. */
  amount_due: string;
  livemode: boolean;
  /** ISO 8601; deposits that come later are reported all the same. */
  expires_at: string;
}

export type AddressAnswer =
  | {
      outcome: 'given';
      /** Address of this payment alone: no other may have it. */
      address: string;
      /** Blocks after which a deposit counts, its own included; at least 1. */
      required_confirmations: number;
      /** Chain of EIP-155, on networks that have one. */
      chain_id?: number;
      /** Contract of a token. */
      token_contract?: string;
      /** Page on which a person plays the payer; sandboxes only. */
      play_url?: string;
    }
  | { outcome: 'declined'; code: string; message: string };

export interface ScreeningQuestion {
  crypto_payment_id: string;
  transaction_id: string;
  asset: string;
  network: string;
  livemode: boolean;
}

export type ScreeningAnswer =
  | { outcome: 'passed' }
  /** `reason` is for operators. */
  | { outcome: 'failed'; code: string; reason: string };

export interface SettlementInstruction {
  crypto_settlement_id: string;
  /** Version of the document when the instruction was sent. @see connectors/contract/guard.ts */
  version: number;
  asset: string;
  network: string;
  /** Smallest units that the wallet receives. */
  amount: string;
  wallet_address: string;
  livemode: boolean;
}

/** Progress: taken and not yet broadcast, or broadcast. A callback tells its end. */
export type SettlementAnswer =
  | { outcome: 'pending' }
  | { outcome: 'sent'; transaction_id: string }
  | { outcome: 'refused'; code: string; message: string };

export type SettlementLookup = SettlementAnswer | { outcome: 'not_found' };
