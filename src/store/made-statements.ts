import type { Collection, Db } from 'mongodb';
import type { MadeStatement, MadeTransfer } from '../domain/statement';

/** Statement in the database of the connector that has made it. */
export interface MadeStatementDocument extends MadeStatement {
  /** `{account} {currency} {day}` */
  _id: string;
  /** Whether its lines lead to the balance that the bank has stated. Only otherwise it may change. */
  is_proved: boolean;
  /** ISO 8601, ms. */
  made_at: string;
}

/** Under the reference of its line. */
export type MadeTransferDocument = Omit<MadeTransfer, 'bank_reference'> & { _id: string };

const COLLECTIONS = { statements: 'made_statements', transfers: 'made_transfers' };

export function openMadeStatements(ofConnector: Db): Collection<MadeStatementDocument> {
  return ofConnector.collection<MadeStatementDocument>(COLLECTIONS.statements);
}

export function openMadeTransfers(ofConnector: Db): Collection<MadeTransferDocument> {
  return ofConnector.collection<MadeTransferDocument>(COLLECTIONS.transfers);
}
