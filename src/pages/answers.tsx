import type { Context } from 'koa';
import type { Logger } from '../base/log';
import type { PaymentDocument, PaymentPages } from '../service/money/payments';
import { type BrowserCookie, browserCookie } from './browser';
import type { CryptoPagePayment } from './crypto-stage';
import { type LanguageChooser, languageChooser } from './language';
import { type IconName, LanguageSwitch, renderPage, Sign } from './layout';
import { bankUrl, type PayAssets, type PayPageProps } from './pay-views';
import { allowForms, seeOther } from './security';
import type { Texts } from './texts/texts';

export interface PayPageDeps extends Omit<PaymentPages, 'cryptoPayments'> {
  cryptoPayments: { byToken: (tokenHash: string) => Promise<CryptoPagePayment | null> };
  publicUrl: string;
  log: Logger;
}

export interface PayPages extends PayPageDeps {
  browser: BrowserCookie;
  chooseLanguage: LanguageChooser;
  notice: (
    ctx: Context,
    name: NoticeName,
    payment?: Record<'country' | 'onward', string | null>,
  ) => void;
  show: (
    ctx: Context,
    payment: PaymentDocument,
    page: (props: PayPageProps) => string,
  ) => Promise<void>;
  cancel: (ctx: Context, payment: PaymentDocument) => Promise<void>;
}

export function shareAnswers(deps: PayPageDeps, assets: PayAssets): PayPages {
  const chooseLanguage = languageChooser(deps.publicUrl);
  return {
    ...deps,
    chooseLanguage,
    browser: browserCookie(deps.publicUrl),
    notice: (ctx, name, { country, onward } = { country: null, onward: null }) => {
      ctx.status = NOTICES[name].status;
      ctx.type = 'text/html; charset=utf-8';
      const language = chooseLanguage(ctx, country);
      const { notice, frame } = language.texts;
      const { title, text } = notice[name];
      ctx.body = renderPage({
        lang: language.locale,
        title,
        stylesheet: assets.css,
        footer: frame.secure,
        languages: <LanguageSwitch {...language} />,
        children: (
          <>
            <Sign icon={NOTICES[name].icon} title={title} text={text} />
            {onward !== null && (
              <a class="button" href={onward}>
                {frame.backToShop}
              </a>
            )}
          </>
        ),
      });
    },
    show: async (ctx, payment, page) => {
      const { success_url, error_url, livemode, country } = payment;
      const brand = await deps.getBrand(payment);
      allowForms(ctx, { urls: [bankUrl(payment), success_url, error_url], livemode });
      ctx.type = 'text/html; charset=utf-8';
      ctx.body = page({ payment, brand, assets, language: chooseLanguage(ctx, country) });
    },
    cancel: async (ctx, payment) => {
      const answer = await deps.cancelPayment(payment);
      // The waiting page redirects when it is too late to cancel.
      seeOther(ctx, answer === 'cancelled' ? payment.error_url : `/pay/return/${payment._id}`);
    },
  };
}

type NoticeName = keyof Texts['notice'];

const NOTICES: Record<NoticeName, { status: number; icon: IconName }> = {
  unknown: { status: 404, icon: 'link' },
  taken: { status: 410, icon: 'link' },
  expired: { status: 410, icon: 'clock' },
  ended: { status: 410, icon: 'link' },
  foreign: { status: 403, icon: 'cross' },
  done: { status: 200, icon: 'check' },
  trouble: { status: 503, icon: 'clock' },
};
