use std::future::poll_fn;
use std::task::Poll;

/// Is not ready once: ends the present turn.
pub(crate) async fn give_way() {
    let mut given = false;
    poll_fn(|context| {
        if given {
            return Poll::Ready(());
        }
        given = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
