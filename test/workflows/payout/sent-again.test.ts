import { readBalances } from '../../support/book';
import { saveHistory } from '../../support/histories';
import { callback, scriptedBank, useWorkflowSetting } from '../../support/workflow-setting';
import { differencesOf } from '../payment/setting';
import { late, MONEY, moneyOf, payingOut, postingsOf, storedPayout } from './setting';

const setting = useWorkflowSetting();

test.each([
  ['another reference', { bank_reference: 'second' }, true],
  ['the same reference', { bank_reference: 'first' }, false],
  ['no reference', {}, false],
])('a completed payout that completes again with %s', async (_which, facts, isSecond) => {
  await payingOut(setting, scriptedBank(), async ({ handle, id, input }) => {
    await handle.signal('completed', callback({ bank_reference: 'first' }));
    await handle.result();
    const again = await late(setting, id, 'completed', facts);
    await again.result();
    await (await late(setting, id, 'completed', facts)).result();
    const attention = isSecond ? 'second_completion' : null;
    expect(await storedPayout(setting, id)).toMatchObject({ status: 'completed', attention });
    const book = await readBalances(setting.stores, `${input.account_id}:sandbox:EUR`);
    const more = isSecond ? input.amount : 0;
    expect(book('receivable.bank') ?? 0).toBe(isSecond ? -input.amount : 0);
    const { available, atBank } = MONEY.captured;
    expect(await moneyOf(setting, input)).toMatchObject({ available, atBank: atBank + more });
    expect(await postingsOf(setting, id)).toHaveLength(isSecond ? 3 : 2);
    expect(await differencesOf(setting, id)).toEqual([]);
    if (isSecond) await saveHistory(again, 'payout-second-completion');
  });
});
