import type { CancelAnswer, Outdated } from './activities';

/**
 * Activities of a crypto connector on its task queue `connector-{name}`, with the rules of bank
 * connectors. Amounts are integers in the asset's smallest unit, as text. Inputs and answers never
 * name a payer. @see docs/connectors.md#crypto-connectors
 */
export interface CryptoConnectorActivities {
  /** Quotes the amount due in the asset. A later quote may differ. */
  quoteRate(input: RateQuestion): Promise<RateAnswer>;
  /** Assigns an address to one payment and watches it. Id: `crypto_payment_id`. */
  giveAddress(input: AddressInstruction): Promise<AddressAnswer>;
  screenSource(input: ScreeningQuestion): Promise<ScreeningAnswer>;
  /**
   * Returns the time up to which every deposit on the network was reported, and answered by the
   * service. The window of a payment closes after it. Optional: register it if supported.
   */
  readChainTime?(input: ChainQuestion): Promise<ChainTime>;
  /** Pays a balance with at most one transaction on the chain. */
  sendSettlement(input: SettlementInstruction): Promise<SettlementAnswer | Outdated>;
  /** Looks up a settlement as `lookUpRefund` does. */
  lookUpSettlement(input: { crypto_settlement_id: string }): Promise<SettlementLookup>;
  /** Cancels a settlement, as `cancelPayout` does. Optional. */
  cancelSettlement?(input: { crypto_settlement_id: string }): Promise<CancelAnswer>;
}

export interface RateQuestion {
  crypto_payment_id: string;
  /** Minor units of `currency`. */
  amount: number;
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
      /** Price of one whole unit of the asset in `currency`, as a decimal number for display. */
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
  /** ISO 8601; later deposits are still reported. */
  expires_at: string;
}

export type AddressAnswer =
  | {
      outcome: 'given';
      /** Address of this payment alone. */
      address: string;
      /** Blocks after which a deposit counts, including its own; at least 1. */
      required_confirmations: number;
      /** EIP-155 chain ID, on networks that have one. */
      chain_id?: number;
      token_contract?: string;
      /** Page where a tester plays the payer; sandboxes only. */
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

interface ChainQuestion {
  network: string;
  livemode: boolean;
}

interface ChainTime {
  /** ISO 8601: newest block whose deposits were all reported; null before the first. */
  reported_until: string | null;
}

export interface SettlementInstruction {
  crypto_settlement_id: string;
  /** Document version when the instruction was sent. @see connectors/contract/guard.ts */
  version: number;
  asset: string;
  network: string;
  /** Smallest units. */
  amount: string;
  wallet_address: string;
  livemode: boolean;
}

/** `pending`: accepted and not yet broadcast. A callback reports the end. */
export type SettlementAnswer =
  | { outcome: 'pending' }
  | { outcome: 'sent'; transaction_id: string }
  | { outcome: 'refused'; code: string; message: string };

export type SettlementLookup = SettlementAnswer | { outcome: 'not_found' };
