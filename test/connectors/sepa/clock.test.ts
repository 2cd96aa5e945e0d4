import { verifyLedger } from '../../../src/ledger-check/verify';
import { advance, between, DAY_MS, repeatIfBehind } from '../../api/clock-setting';
import { describeWithBank } from '../../support/mock-bank';
import { useService } from '../../support/service';
import { makePrefix, openPayer, ROUTES, useSepa } from './world';

describeWithBank('the clock of an account that pays by SEPA files', () => {
  const prefix = makePrefix();
  const service = useService({ live: { connectors: '', prefix }, tests: ROUTES });
  const world = useSepa(service, prefix);

  test(
    'stands after sixty days in which the bank has said nothing, and its word counts then',
    repeatIfBehind(async () => {
      const payer = await openPayer(service);
      const first = await payer.submit();
      const { created_at } = await payer.read(first);
      await advance(payer.account, { advance: 'P60D' });
      await service.becomes('payouts', first, { status: 'submitted', attention: 'not_sent' });

      const second = await payer.submit({ amount: 2_000 });
      expect(between(created_at, (await payer.read(second)).created_at)).toBeGreaterThan(
        60 * DAY_MS,
      );
      await world.send();
      for (const id of [first, second]) {
        const { completed_at } = await payer.becomes(id, 'completed');
        expect(between(created_at, completed_at)).toBeGreaterThan(60 * DAY_MS);
      }
      await advance(payer.account, { advance: 'P30D' });
      const { differences } = await verifyLedger(service.mongo, service.db.databaseName);
      expect(differences).toEqual([]);
    }),
  );
});
