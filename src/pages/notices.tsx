import type { IconName } from './icons';
import type { PageLanguage } from './language';
import { LanguageSwitch } from './language-switch';
import { renderPage, Sign } from './layout';
import type { PayAssets } from './pay-views';
import type { Texts } from './texts/texts';

export type NoticeName = keyof Texts['notice'];

export const NOTICES: Record<NoticeName, { status: number; icon: IconName }> = {
  unknown: { status: 404, icon: 'link' },
  taken: { status: 410, icon: 'link' },
  expired: { status: 410, icon: 'clock' },
  ended: { status: 410, icon: 'link' },
  foreign: { status: 403, icon: 'cross' },
  done: { status: 200, icon: 'check' },
  trouble: { status: 503, icon: 'clock' },
};

interface NoticeProps {
  assets: PayAssets;
  language: PageLanguage;
  onward: string | null;
}

export function noticePage(name: NoticeName, { assets, language, onward }: NoticeProps): string {
  const { notice, frame } = language.texts;
  const { title, text } = notice[name];
  return renderPage({
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
}
