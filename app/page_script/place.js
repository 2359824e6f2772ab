// Reports when the element that reserves a place on the page first comes on screen.

/** @param {{ parentElement: HTMLElement, setTriggerValue: (name: string, value: boolean) => void }} mounted */
export default function ({ parentElement, setTriggerValue }) {
  const watch = new IntersectionObserver(([{ isIntersecting }]) => {
    if (!isIntersecting) return;
    watch.disconnect();
    setTriggerValue("seen", true);
  });
  watch.observe(parentElement);
  return () => watch.disconnect();
}
