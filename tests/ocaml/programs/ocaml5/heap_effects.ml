(* Continuations that are parked and hold memory, and domains that hold some on their stacks: works until
   a file exists. FILE.ready is there when everything is. *)

open Effect
open Effect.Deep

type _ Effect.t += Park : unit Effect.t

let parked : (unit, unit) continuation list ref = ref []

let park words =
  match_with
    (fun () ->
      let held = Bytes.make (8 * words) 'h' in
      perform Park;
      ignore (Sys.opaque_identity held))
    ()
    {
      retc = (fun () -> ());
      exnc = raise;
      effc =
        (fun (type a) (eff : a Effect.t) ->
          match eff with
          | Park -> Some (fun (k : (a, unit) continuation) -> parked := k :: !parked)
          | _ -> None);
    }

let stop = Sys.argv.(1)

let hold ready words () =
  let held = Bytes.make (8 * words) 'd' in
  Atomic.incr ready;
  while not (Sys.file_exists stop) do
    ignore (Sys.opaque_identity (List.init 1000 (fun i -> i)))
  done;
  ignore (Sys.opaque_identity held)

let () =
  for _ = 1 to 50 do park 1000 done;
  let ready = Atomic.make 0 in
  let domains = List.init 3 (fun i -> Domain.spawn (hold ready (10_000 * (i + 1)))) in
  while Atomic.get ready < 3 do Domain.cpu_relax () done;
  close_out (open_out (stop ^ ".ready"));
  hold ready 40_000 ();
  List.iter Domain.join domains;
  List.iter (fun k -> continue k ()) !parked;
  print_endline "done"
