import type { Collection, Db } from 'mongodb';
import type { MadeStatement } from '../domain/statement';

/** Statement in the database of the connector that has made it. */
export interface MadeStatementDocument extends MadeStatement {
  /** `{account} {currency} {day}` */
  _id: string;
  /** Whether its lines lead to the balance that the bank has stated. Only otherwise it may change. */
  is_proved: boolean;
  /** ISO 8601, ms. */
  made_at: string;
}

const COLLECTION = 'made_statements';

export function openMadeStatements(ofConnector: Db): Collection<MadeStatementDocument> {
  return ofConnector.collection<MadeStatementDocument>(COLLECTION);
}
