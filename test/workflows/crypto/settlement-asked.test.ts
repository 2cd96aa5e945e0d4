import type { SettlementLookup } from '../../../connectors/contract/crypto';
import { eventually } from '../../support/http';
import { scriptedChain } from '../../support/scripted-chain';
import { useWorkflowSetting, withBank } from '../../support/workflow-setting';
import { refusalOf, shows, unlessUnreachable } from '../lifecycles';
import { balanceOf, ETHER, openSettlement } from './setting';

const setting = useWorkflowSetting('real');

const ACT = { operator: 'ada', reason: 'the chain shows nothing' };
const CONFIRMED = { ...ACT, bank_confirmed_not_executed: true };

type Settling = Awaited<ReturnType<typeof openSettlement>>;

/** A settlement whose bytes a connector has kept; `known` is what it says when it is asked. */
function pending(
  known: SettlementLookup,
  story: (settling: Settling) => Promise<void>,
  cancel?: 'cancelled' | 'too_late',
) {
  const chain = scriptedChain({
    sendSettlement: async () => ({ outcome: 'pending' }),
    lookUpSettlement: async () => known,
    ...(cancel === undefined ? {} : { cancelSettlement: async () => ({ outcome: cancel }) }),
  });
  return withBank(setting, chain, async (connector) => {
    const settling = await openSettlement(setting, connector);
    await shows(settling.handle, 'instruction at the connector: pending');
    await story(settling);
  });
}

const markFailed = ({ handle }: Settling, act: object = ACT) =>
  unlessUnreachable(() => handle.executeUpdate<object, [object]>('mark_failed', { args: [act] }));

const GIVEN_BACK = { available: `${ETHER}`, reserved: '0' };
const PENDING = { outcome: 'pending' } as const;

test('a settlement that the connector may still broadcast is not given back', () =>
  pending(PENDING, async (settling) => {
    const { id, account_id, handle } = settling;
    expect(await refusalOf(markFailed(settling))).toEqual({
      code: 'held_by_bank',
      message: expect.stringMatching(/^The bank holds the settlement/),
    });
    expect(await balanceOf(setting, account_id)).toMatchObject({ reserved: `${ETHER}` });
    expect(await markFailed(settling, CONFIRMED)).toMatchObject({ status: 'failed' });
    await handle.result();
    const { audit } = (await setting.stores.crypto_settlements.get(id)) ?? {};
    expect(audit).toMatchObject([{ what: 'mark_failed', bank_confirmed_not_executed: true }]);
    expect(await balanceOf(setting, account_id)).toEqual(GIVEN_BACK);
  }));

test('one that was broadcast since becomes `sent`', () =>
  pending({ outcome: 'sent', transaction_id: 'tx' }, async (settling) => {
    expect(await refusalOf(markFailed(settling))).toMatchObject({ code: 'held_by_bank' });
    const { id, report, handle } = settling;
    await eventually('it to be sent', async () => {
      return (await setting.stores.crypto_settlements.get(id))?.status === 'sent';
    });
    expect(await refusalOf(markFailed(settling))).toMatchObject({ code: 'held_by_bank' });
    await report('completed', { transaction_id: 'tx' });
    expect(await handle.result()).toMatchObject({ status: 'completed' });
  }));

test.each([
  ['does not know', { outcome: 'not_found' } as const, undefined],
  ['has refused', { outcome: 'refused', code: 'late', message: 'Late.' } as const, undefined],
  ['cancels', PENDING, 'cancelled' as const],
])('one that the connector %s is given back', (_case, known, cancel) =>
  pending(
    known,
    async (settling) => {
      expect(await markFailed(settling)).toMatchObject({ status: 'failed' });
      await settling.handle.result();
      expect(await balanceOf(setting, settling.account_id)).toEqual(GIVEN_BACK);
    },
    cancel,
  ),
);
