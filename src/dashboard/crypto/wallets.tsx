import {
  ASSETS,
  assetRules,
  bookCurrency,
  formatUnits,
  NETWORKS,
  type Network,
} from '../../domain/crypto/assets';
import { ServiceError } from '../../domain/errors';
import { CreateCryptoSettlement } from '../../domain/wire/crypto';
import { tryValidate } from '../../domain/wire/validate';
import { createCryptoSettlement } from '../../service/money/crypto';
import { type BalanceRow, readBalances } from '../../service/money/read';
import { listWallets, type ShownWallet, setWallet } from '../../service/money/wallets';
import { createInShare } from '../../service/shares';
import { Field } from '../frame/fields';
import { actOnMoney, FORM_KEY, field, newFormKey, redirect } from '../frame/form';
import { Note, PageHead, Panel, PostForm, Table, useCall, When } from '../frame/parts';
import { postRoute, type Route, viewRoute } from '../frame/route';
import { CryptoTabs } from './pages';

const PATH = '/crypto/wallets';
const SETTLE_PATH = '/crypto/settle';

export const WALLET_ROUTES: readonly Route[] = [
  viewRoute(PATH, 'Wallets', async (call, deps) => {
    const { account_id, livemode } = call.scope;
    const [wallets, { balances }] = await Promise.all([
      listWallets(deps, account_id, livemode),
      readBalances(deps, call.scope),
    ]);
    const page = (
      <>
        <CryptoTabs />
        <PageHead title="Wallets" />
        <AssetBalances balances={balances} />
        {NETWORKS.map((network) => (
          <WalletPanel
            key={network}
            network={network}
            wallet={wallets.find((one) => one.network === network)}
          />
        ))}
      </>
    );
    return { page };
  }),
  postRoute(PATH, 'wallets.change', {
    title: 'Register a wallet',
    confirmation: {
      question: (form) =>
        `Settlements of every asset on ${field(form, 'network')} go to ${field(form, 'address')}. ` +
        'Assets that are sent to a wrong address are lost.',
      button: 'Register wallet',
      proof: 'step_up',
    },
    handle: async (call, deps) => {
      const { scope, form } = call;
      const network = NETWORKS.find((one) => one === field(form, 'network'));
      if (network === undefined) return 'not_found';
      try {
        const address = field(form, 'address');
        const wallet = await setWallet(deps, { ...scope, network, address });
        const suffix =
          wallet.counting === wallet.address ? '' : ', and takes effect after 24 hours';
        return redirect(call, PATH, 'good', `The wallet is registered${suffix}.`);
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error;
        return redirect(call, PATH, 'bad', `Nothing was changed: ${error.message}`);
      }
    },
  }),
  postRoute(SETTLE_PATH, 'crypto.settle', {
    title: 'Settle now',
    confirmation: {
      question: (form) =>
        `Pay the whole balance of ${field(form, 'asset')} out to the wallet on ` +
        `${field(form, 'network')}? What was sent can't be taken back.`,
      button: 'Settle now',
      proof: 'step_up',
    },
    /** Settles under the form key, so that a repeated form settles once. */
    handle: async (call, deps) => {
      const { form } = call;
      const [asset, network, key] = [
        field(form, 'asset'),
        field(form, 'network'),
        field(form, 'key'),
      ];
      if (assetRules(asset, network) === undefined || !FORM_KEY.test(key)) return 'not_found';
      const wallet = { asset, network };
      const request = {
        ...{ caller: call.scope, requestId: call.requestId, idempotencyKey: key },
        canonical: JSON.stringify(wallet),
        fields: tryValidate(CreateCryptoSettlement, wallet),
      };
      return await actOnMoney(deps, call, {
        act: 'settlement.created',
        target: null,
        facts: { ...wallet, idempotency_key: key },
        run: () => createInShare(deps, request, () => createCryptoSettlement(deps, request)),
        success: ({ id }) => [
          `/crypto/settlements/${id}`,
          'The settlement has started. Its status shows when it has completed.',
        ],
        unknown: () => {
          const text =
            'It is not known yet whether it was settled. Look at the settlements before you try again.';
          return redirect(call, PATH, 'bad', text);
        },
        refusedPath: PATH,
      });
    },
  }),
];

function AssetBalances({ balances }: { balances: readonly BalanceRow[] }) {
  const call = useCall();
  const rows = ASSETS.flatMap((cryptoAsset) => {
    const row = balances.find(({ currency }) => currency === bookCurrency(cryptoAsset));
    if (row === undefined) return [];
    const { asset, network } = cryptoAsset;
    return [
      {
        key: asset,
        cells: [
          cryptoAsset.display_name,
          formatUnits(BigInt(row.available), cryptoAsset),
          formatUnits(BigInt(row.reserved), cryptoAsset),
          call.may('crypto.settle') && row.available > 0 && (
            <PostForm
              key="settle"
              path={SETTLE_PATH}
              button="Settle now"
              tone="plain"
              hidden={{ asset, network, key: newFormKey() }}
            />
          ),
        ],
      },
    ];
  });
  return (
    <Panel title="Balances of coins">
      <Table
        label="Balances of coins"
        head={['Coin', 'Available', 'Reserved', 'Act']}
        rows={rows}
        none="No crypto payments have been received yet."
      />
      <p class="muted small">Each balance is paid out to its wallet automatically every day.</p>
    </Panel>
  );
}

interface WalletPanelProps {
  network: Network;
  wallet: ShownWallet | undefined;
}

function WalletPanel({ network, wallet }: WalletPanelProps) {
  const call = useCall();
  const { may, scope, now } = call;
  return (
    <Panel title={`Wallet on ${network}`}>
      {wallet === undefined ? (
        <p class="muted">None is registered: its assets stay in their balances.</p>
      ) : (
        <p>
          <code>{wallet.address}</code>
        </p>
      )}
      {wallet !== undefined && wallet.counts_from > now.toISOString() && (
        <Note tone="note">
          {'It takes effect on '}
          <When at={wallet.counts_from} />
          {'; nothing is settled until then.'}
        </Note>
      )}
      {may('wallets.change') && (
        <PostForm path={PATH} button="Register wallet" tone="plain" hidden={{ network }}>
          <Field
            id={`address-${network}`}
            label={`Address on ${network}`}
            name="address"
            maxLength={100}
            hint={
              scope.livemode
                ? 'Its checksum is verified. It takes effect after 24 hours, in which nothing is settled.'
                : 'Its checksum is verified.'
            }
            required
          />
        </PostForm>
      )}
    </Panel>
  );
}
