import { randomUUID } from 'node:crypto';
import { KINDS, LIFECYCLES } from '../../src/lifecycles';
import { useDatabase } from '../support/database';

const database = useDatabase();

const FINAL = {
  payment: 'settled',
  refund: 'settled',
  payout: 'completed',
  crypto_payment: 'received',
  crypto_settlement: 'completed',
};

/** Rows with the fields that indexes hold. */
function rows(count: number, statuses: readonly string[]) {
  return Array.from({ length: count }, (_, n) => {
    const _id = randomUUID();
    const own = { position: _id, token_hash: _id, payment_id: _id, address: _id };
    return {
      _id,
      account_id: 'acct_1',
      livemode: false,
      status: statuses[n % statuses.length],
      ...own,
    };
  });
}

test.each(KINDS)(
  'the few %ss in flight are paged through by an index of their own',
  async (kind) => {
    const { db, stores } = database;
    const collection = db.collection<{ _id: string }>(`${kind}s`);
    await collection.insertMany(rows(400, [FINAL[kind]]));
    const under = rows(7, LIFECYCLES[kind].inFlight);
    await collection.insertMany(under);
    const ids = under.map(({ _id }) => _id).sort();

    const first = await LIFECYCLES[kind].page(stores, '', 4);
    const second = await LIFECYCLES[kind].page(stores, first.at(-1)?._id ?? '', 4);
    expect([...first, ...second].map(({ _id }) => _id)).toEqual(ids);

    const plan = await stores[`${kind}s`].inFlight(ids[2] ?? '', 4).explain('executionStats');
    const { executionStats } = plan;
    expect(JSON.stringify(plan)).toContain('"indexName":"in_flight"');
    expect(JSON.stringify(plan)).not.toContain('COLLSCAN');
    expect(executionStats).toMatchObject({ nReturned: 4, totalDocsExamined: 4 });
  },
);
