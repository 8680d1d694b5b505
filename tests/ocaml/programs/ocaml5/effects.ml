(* Fibers: stacks that are switched while blocks are allocated, on every one of them. A generator is
   resumed from different places; its callers are those that resumed it. *)

open Effect
open Effect.Deep

type _ Effect.t += Yield : string -> unit Effect.t

let rec produce n =
  if n > 0 then (
    perform (Yield (string_of_int n));
    produce (n - 1))

let collect n =
  match_with produce n
    {
      retc = (fun () -> []);
      exnc = raise;
      effc =
        (fun (type a) (e : a Effect.t) ->
          match e with
          | Yield s -> Some (fun (k : (a, _) continuation) -> let rest = continue k () in s :: rest)
          | _ -> None);
    }

let rec nested depth = if depth = 0 then collect 300 else List.rev (collect 3) @ nested (depth - 1)

let () =
  let before = Gc.minor_words () in
  let total = ref 0 in
  for _ = 1 to 30 do
    total := !total + List.length (nested 5)
  done;
  let d =
    Domain.spawn (fun () ->
        let before = Gc.minor_words () in
        let length = List.length (nested 50) in
        (length, Gc.minor_words () -. before))
  in
  let length, words = Domain.join d in
  (* From OCaml 5.4 on, the runtime's own total leaves out domains that have ended. *)
  Printf.eprintf "truth: words %.0f\n" (words +. Gc.minor_words () -. before);
  Printf.printf "%d %d\n" !total length
