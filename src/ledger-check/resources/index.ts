import { MaxKey, MinKey } from 'mongodb';
import { UPDATED } from '../../store/list';
import { type Page, type ResourceCheck, resourceCheck } from '../rule';
import type { InSnapshot } from '../snapshot';
import { CRYPTO_PAYMENTS } from './crypto-payments';
import { PAYMENTS } from './payments';
import { CRYPTO_SETTLEMENTS, PAYOUTS } from './payouts-and-settlements';
import {
  compareDisputes,
  comparePayments,
  compareRefunds,
  DISPUTES,
  REFUNDS,
} from './refunds-and-disputes';

export const RESOURCE_CHECKS: readonly ResourceCheck[] = [
  resourceCheck('payment', PAYMENTS, comparePayments),
  resourceCheck('refund', REFUNDS, compareRefunds),
  resourceCheck('payout', PAYOUTS),
  resourceCheck('dispute', DISPUTES, compareDisputes),
  resourceCheck('crypto_payment', CRYPTO_PAYMENTS),
  resourceCheck('crypto_settlement', CRYPTO_SETTLEMENTS),
];

const PAGE = 1_000;

export interface Span {
  /** ISO 8601, ms; empty for all. */
  since: string;
  until: string;
}

/** Compares the resources that changed in a span with their entries, page by page. */
export async function* compareResources(
  inSnapshot: InSnapshot,
  { since, until }: Span,
): AsyncGenerator<Page> {
  for (const { page: readPage } of RESOURCE_CHECKS) {
    let last: Page['last'];
    do {
      const after = { _id: { $gt: last?._id ?? '' } };
      const min = {
        updated_at: last?.updated_at ?? since,
        _id: last ? `${last._id}\u0000` : new MinKey(),
      };
      const max = { updated_at: until, _id: new MaxKey() };
      const page = await inSnapshot((read) =>
        since === ''
          ? readPage(read, after, { sort: { _id: 1 }, limit: PAGE })
          : readPage(read, {}, { hint: UPDATED.name, min, max, limit: PAGE }),
      );
      yield page;
      last = page.rows < PAGE ? undefined : page.last;
    } while (last !== undefined);
  }
}
